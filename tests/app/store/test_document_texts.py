"""Texts of documents are read once, whoever reads a path again."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest
import sqlite_utils

from app.store.conversations import ConversationStore
from app.store.document_texts import DocumentTexts
from tests.app.store.samples import document


def texts_of(*texts: str) -> tuple[sqlite_utils.Database, list[bytes]]:
    db = sqlite_utils.Database(memory=True)
    db.conn.row_factory = sqlite3.Row
    db.execute("CREATE TABLE documents (digest BLOB, text TEXT)")
    digests = [hashlib.sha256(text.encode()).digest() for text in texts]
    for digest, text in zip(digests, texts, strict=True):
        db.execute("INSERT INTO documents VALUES (?, ?)", (digest, text))
    return db, digests


def test_two_reads_of_a_path_share_the_text_of_its_document(store: ConversationStore, db_path: Path) -> None:
    conversation_id = store.create_conversation().id
    attachment = store.add_attachment(conversation_id, document("long text " * 10_000))
    asked = store.add_user_message(conversation_id, None, "Read it.", [attachment.id])
    other = ConversationStore.open(db_path)
    texts = [each.path(asked.id)[0].attachments[0].text for each in (store, store, other)]
    assert texts[0] == "long text " * 10_000
    assert texts[0] is texts[1] is texts[2]
    other.close()


def test_texts_that_were_used_longest_ago_are_given_up_first() -> None:
    db, (a, b, c) = texts_of("a" * 40, "b" * 40, "c" * 40)
    texts = DocumentTexts(most_characters=100)
    first = texts.read(db, [a, b])
    texts.read(db, [a])
    texts.read(db, [c])
    db.execute("DELETE FROM documents")
    assert texts.read(db, [a])[a] is first[a]
    assert b not in texts.read(db, [b])


def test_a_text_that_is_too_long_to_be_kept_is_read_all_the_same() -> None:
    db, (a,) = texts_of("a" * 200)
    texts = DocumentTexts(most_characters=100)
    assert texts.read(db, [a]) == {a: "a" * 200}
    db.execute("DELETE FROM documents")
    assert texts.read(db, [a]) == {}


def test_purged_texts_are_forgotten(store: ConversationStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = DocumentTexts()
    monkeypatch.setattr("app.store.attachments.TEXTS", kept)
    monkeypatch.setattr("app.store.conversations.TEXTS", kept)
    conversation_id = store.create_conversation().id
    store.add_attachment(conversation_id, document("secret"))
    digest = hashlib.sha256(b"secret").digest()
    empty, _ = texts_of()
    assert kept.read(empty, [digest])
    store.delete(conversation_id)
    store.purge_deleted()
    assert kept.read(empty, [digest]) == {}
