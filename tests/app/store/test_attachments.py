from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.documents.ways import DocumentWay
from app.ledger.records import ContextChange, ItemMark
from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError, StoreError
from tests.app.store.samples import document


@pytest.fixture
def conversation_id(store: ConversationStore) -> int:
    return store.create_conversation().id


def stored_texts(db_path: Path) -> list[str]:
    with closing(sqlite3.connect(db_path)) as conn:
        return [text for (text,) in conn.execute("SELECT text FROM documents ORDER BY id")]


def test_a_document_waits_in_the_draft_until_it_is_sent(
    store: ConversationStore, conversation_id: int
) -> None:
    pdf = replace(document(), kind="pdf", num_pages=12, encoding=None, encoding_guessed=False)
    attachment = store.add_attachment(conversation_id, pdf)
    assert (attachment.title, attachment.source, attachment.kind) == (pdf.title, pdf.source, "pdf")
    assert (attachment.text, attachment.num_pages, attachment.encoding) == (pdf.text, 12, None)
    assert attachment.encoding_guessed is False
    other = store.add_attachment(conversation_id, document("another"))
    assert store.draft_attachments(conversation_id) == [attachment, other]

    message = store.add_user_message(conversation_id, None, "Read it.", [attachment.id])
    assert message.attachments == (attachment,)
    assert store.draft_attachments(conversation_id) == [other]


def test_attachments_keep_the_order_in_which_they_were_sent(
    store: ConversationStore, conversation_id: int
) -> None:
    first, second, third = (store.add_attachment(conversation_id, document(text)) for text in "abc")
    message = store.add_user_message(conversation_id, None, "", [third.id, first.id, second.id])
    assert message.attachments == (third, first, second)
    assert store.path(message.id)[0].attachments == (third, first, second)


def test_an_edited_message_shares_the_attachments_of_the_old_one(
    store: ConversationStore, conversation_id: int, db_path: Path
) -> None:
    attachment = store.add_attachment(conversation_id, document())
    old = store.add_user_message(conversation_id, None, "old", [attachment.id])
    new = store.add_user_message(conversation_id, None, "new", [attachment.id])
    assert old.attachments == new.attachments == store.message(old.id).attachments == (attachment,)
    assert stored_texts(db_path) == [attachment.text]


def test_the_same_text_is_stored_once(store: ConversationStore, db_path: Path) -> None:
    attachments = [
        store.add_attachment(store.create_conversation().id, document("one text", title)) for title in "ab"
    ]
    assert [(attachment.title, attachment.text) for attachment in attachments] == [
        ("a", "one text"),
        ("b", "one text"),
    ]
    assert stored_texts(db_path) == ["one text"]
    store.remove_attachment(attachments[0].id)
    assert stored_texts(db_path) == ["one text"]
    store.remove_attachment(attachments[1].id)
    assert stored_texts(db_path) == []


def test_another_encoding_gives_an_attachment_of_a_draft_another_text(
    store: ConversationStore, conversation_id: int, db_path: Path
) -> None:
    attachment = store.add_attachment(conversation_id, document("ÐŸÑ€Ð¸Ð²ÐµÑ‚"))
    better = replace(document("Привет"), encoding="koi8-r", encoding_guessed=False)
    updated = store.update_attachment(attachment.id, better)
    assert updated == replace(attachment, text="Привет", encoding="koi8-r", encoding_guessed=False)
    assert store.draft_attachments(conversation_id) == [updated]
    assert stored_texts(db_path) == ["Привет"]


def test_what_was_sent_can_neither_be_removed_nor_changed(
    store: ConversationStore, conversation_id: int
) -> None:
    attachment = store.add_attachment(conversation_id, document())
    message = store.add_user_message(conversation_id, None, "Read it.", [attachment.id])
    with pytest.raises(StoreError, match="was sent"):
        store.remove_attachment(attachment.id)
    with pytest.raises(StoreError, match="was sent"):
        store.update_attachment(attachment.id, document("another"))
    assert store.message(message.id).attachments == (attachment,)


def test_a_message_with_a_missing_or_foreign_attachment_is_not_sent_at_all(
    store: ConversationStore, conversation_id: int
) -> None:
    store.set_draft(conversation_id, "Read it.")
    own = store.add_attachment(conversation_id, document())
    foreign = store.add_attachment(store.create_conversation().id, document())
    before = store.conversation(conversation_id)
    for wrong_id in (foreign.id, 99):
        with pytest.raises(NotFoundError, match="Add the file again"):
            store.add_user_message(conversation_id, None, "Read it.", [own.id, wrong_id])
    assert store.conversation(conversation_id) == before
    assert store.draft_attachments(conversation_id) == [own]


def test_an_attachment_knows_where_the_pages_of_its_document_begin(
    store: ConversationStore, conversation_id: int, db_path: Path
) -> None:
    attachment = store.add_attachment(conversation_id, replace(document(), page_starts=(0, 4, 4)))
    assert attachment.page_starts == (0, 4, 4)
    assert store.update_attachment(attachment.id, document("another")).page_starts == ()
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("UPDATE attachments SET page_starts = '[0, null'")
    assert [each.page_starts for each in store.draft_attachments(conversation_id)] == [()]


def test_the_mark_of_a_draft_goes_with_it(store: ConversationStore, conversation_id: int) -> None:
    kept, removed = (store.add_attachment(conversation_id, document(text)) for text in ("one", "two"))
    marks = tuple(ItemMark(f"a{each.id}", way=DocumentWay.SEGMENTS) for each in (kept, removed))
    store.change_context(conversation_id, ContextChange(marks))
    store.remove_attachment(removed.id)
    assert store.ledger(conversation_id).marks == {f"a{kept.id}": marks[0]}
