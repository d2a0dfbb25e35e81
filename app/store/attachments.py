"""Attachments and the documents behind them: a text that several attachments share is stored once."""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Sequence

import sqlite_utils

from app.documents.document import Document
from app.store.document_texts import TEXTS
from app.store.errors import NotFoundError
from app.store.records import Attachment
from app.valid_unicode import valid_unicode

log = logging.getLogger(__name__)

_SELECT = """
    SELECT attachments.id, title, source, kind, digest, num_pages, encoding, encoding_guessed, page_starts
    FROM attachments JOIN documents ON documents.id = document_id
"""


def insert_attachment(db: sqlite_utils.Database, conversation_id: int, document: Document) -> int:
    """Put a document into a conversation's draft and return the attachment's id."""
    ((attachment_id,),) = db.execute(
        """INSERT INTO attachments (conversation_id, document_id, title, source, kind, num_pages,
           num_textless_pages, encoding, encoding_guessed, page_starts)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
           RETURNING id""",
        (conversation_id, *_values(db, document)),
    ).fetchall()
    return int(attachment_id)


def replace_document(db: sqlite_utils.Database, attachment_id: int, document: Document) -> None:
    """Give an attachment of a draft another text, title and encoding."""
    db.execute(
        """UPDATE attachments SET document_id = ?, title = ?, source = ?, kind = ?, num_pages = ?,
           num_textless_pages = ?, encoding = ?, encoding_guessed = ?, page_starts = ? WHERE id = ?""",
        (*_values(db, document), attachment_id),
    )
    delete_unused_documents(db)


def attachment(db: sqlite_utils.Database, attachment_id: int) -> Attachment:
    """Return one attachment."""
    rows = db.execute(f"{_SELECT} WHERE attachments.id = ?", (attachment_id,)).fetchall()
    if not rows:
        raise NotFoundError("This attachment no longer exists.")
    return _records(db, rows)[0]


def draft_of(db: sqlite_utils.Database, conversation_id: int) -> list[Attachment]:
    """Return the attachments of a conversation's draft, oldest first."""
    sql = f"{_SELECT} WHERE conversation_id = ? AND in_draft ORDER BY attachments.id"
    return _records(db, db.execute(sql, (conversation_id,)).fetchall())


def attachments_of(
    db: sqlite_utils.Database, message_ids: Iterable[int]
) -> dict[int, tuple[Attachment, ...]]:
    """Return the attachments of those messages that have any, in their order within the message."""
    ids = json.dumps(list(message_ids))
    links = db.execute(
        """SELECT message_id, attachment_id FROM message_attachments
           WHERE message_id IN (SELECT value FROM json_each(?)) ORDER BY message_id, position""",
        (ids,),
    ).fetchall()
    wanted = json.dumps(sorted({link["attachment_id"] for link in links}))
    sql = f"{_SELECT} WHERE attachments.id IN (SELECT value FROM json_each(?))"
    records = {each.id: each for each in _records(db, db.execute(sql, (wanted,)).fetchall())}
    found: dict[int, tuple[Attachment, ...]] = {}
    for message_id, attachment_id in links:
        found[message_id] = (*found.get(message_id, ()), records[attachment_id])
    return found


def send_attachments(
    db: sqlite_utils.Database, conversation_id: int, message_id: int, attachment_ids: Sequence[int]
) -> None:
    """Attach to a message that is being written, and take what was in the draft out of it."""
    for position, attachment_id in enumerate(attachment_ids):
        owner = db.execute(
            "SELECT conversation_id FROM attachments WHERE id = ?", (attachment_id,)
        ).fetchone()
        if owner is None or owner["conversation_id"] != conversation_id:
            raise NotFoundError("An attachment of this message no longer exists. Add the file again.")
        db.execute(
            "INSERT INTO message_attachments (message_id, attachment_id, position) VALUES (?, ?, ?)",
            (message_id, attachment_id, position),
        )
        db.execute("UPDATE attachments SET in_draft = 0 WHERE id = ? AND in_draft", (attachment_id,))


def delete_unused_documents(db: sqlite_utils.Database) -> None:
    """Delete the texts that no attachment refers to any more."""
    db.execute("DELETE FROM documents WHERE id NOT IN (SELECT document_id FROM attachments)")


def _values(db: sqlite_utils.Database, document: Document) -> tuple[object, ...]:
    return (
        _document_id(db, valid_unicode(document.text)),
        valid_unicode(document.title),
        valid_unicode(document.source),
        document.kind,
        document.num_pages,
        document.num_textless_pages,
        document.encoding,
        document.encoding_guessed,
        json.dumps(document.page_starts),
    )


def _document_id(db: sqlite_utils.Database, text: str) -> int:
    digest = hashlib.sha256(text.encode()).digest()
    db.execute("INSERT INTO documents (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING", (digest, text))
    (document_id,) = db.execute("SELECT id FROM documents WHERE digest = ?", (digest,)).fetchone()
    return int(document_id)


def _records(db: sqlite_utils.Database, rows: Sequence[sqlite3.Row]) -> list[Attachment]:
    texts = TEXTS.read(db, {row["digest"] for row in rows})
    return [_record(row, texts[row["digest"]]) for row in rows]


def _record(row: sqlite3.Row, text: str) -> Attachment:
    return Attachment(
        id=row["id"],
        title=row["title"],
        source=row["source"],
        kind=row["kind"],
        text=text,
        num_pages=row["num_pages"],
        encoding=row["encoding"],
        encoding_guessed=bool(row["encoding_guessed"]),
        page_starts=_page_starts(row),
    )


def _page_starts(row: sqlite3.Row) -> tuple[int, ...]:
    # Places are not worth a document: those that cannot be read are as if the format had no pages.
    try:
        starts = json.loads(row["page_starts"] or "[]")
    except (ValueError, RecursionError):
        starts = None
    if not isinstance(starts, list) or not all(isinstance(each, int) for each in starts):
        log.warning("the page starts of attachment %d cannot be read", row["id"])
        return ()
    return tuple(starts)
