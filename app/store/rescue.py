"""Replacing a damaged store by a new one that holds all that could still be read.

The new file is built beside the damaged one and gets the name `*.rescued` when it is complete; only then is
the damaged one moved aside. A process that is killed at any point leaves files from which the next start goes
on.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from app.durable_files import dated_name, sync_folder
from app.store.connection import (
    connect,
    create_file,
    delete_files,
    files_of,
    migration_names,
    refuse_newer,
    rescued_file,
    suspicion_of,
)
from app.store.records import MessageState, Role
from app.store.salvage import ROLES, STATES, DamagedFile, Row, damaged_file

log = logging.getLogger(__name__)

_UNSOUND_TYPES: dict[str, tuple[type, ...]] = {
    "profile": (bytes,),
    "context_from": (bytes, str, float),
    "page_starts": (bytes,),
    "share": (bytes, str),
}
"""By column that a row can do without, the second one of old files, types that it never had."""

_OF_CONVERSATIONS = {"attachments", "context_marks", "summaries", "readings"}
"""Tables whose rows go with their conversation; an old schema lacks some."""

_OF_OTHERS = {
    "readings": {"message_id": "messages", "attachment_id": "attachments"},
    "reading_segments": {"reading_id": "readings"},
    "sources": {"message_id": "messages", "attachment_id": "attachments"},
}
"""By table, what its rows belong to by their columns; owners come before what belongs to them."""


@dataclass(frozen=True)
class Rescue:
    """What came of a rescue.

    Attributes:
        moved_aside: where the damaged file is now.
        num_messages: messages in the new file.
    """

    moved_aside: Path
    num_messages: int


def rescue_store(path: Path, migrations: Migrations) -> Rescue:
    """Put a new store in the place of the damaged one at `path`, which gets a dated name beside it.

    The new store has the schema of the damaged one as far as that is known; opening it migrates it.
    """
    rescued = rescued_file(path)
    if not rescued.exists():
        _build(path, rescued, migrations)
    aside = _move_aside(path)
    rescued.rename(path)
    suspicion_of(path).unlink(missing_ok=True)
    sync_folder(path.parent)
    with contextlib.closing(connect(path)) as db:
        return Rescue(aside, db.table("messages").count)


def _move_aside(path: Path) -> Path:
    aside = dated_name(path, "damaged")
    # The log goes first: beside another file of this name SQLite would write its content into that one.
    for part, target in zip(files_of(path), files_of(aside), strict=True):
        if part.exists():
            part.rename(target)
    sync_folder(path.parent)
    return aside


def _build(path: Path, rescued: Path, migrations: Migrations) -> None:
    unfinished = path.with_name(f"{path.name}.rescuing")
    try:
        delete_files(unfinished)
        create_file(unfinished, migrations)
        if path.is_file():
            with damaged_file(path, template=unfinished) as source:
                if source is not None:
                    _fill(unfinished, source, path, migrations)
        unfinished.rename(rescued)
    finally:
        delete_files(unfinished)


def _fill(unfinished: Path, source: DamagedFile, path: Path, migrations: Migrations) -> None:
    applied = source.applied_migrations()
    refuse_newer(path, applied, migrations)
    missing = [name for name in migration_names(migrations) if name not in applied]
    if applied and missing:
        delete_files(unfinished)
        create_file(unfinished, migrations, stop_before=missing[0])
    with contextlib.closing(connect(unfinished)) as db:
        db.execute("PRAGMA foreign_keys=OFF")
        with db.atomic():
            _copy_rows(db, source)
        for violation in db.execute("PRAGMA foreign_key_check"):
            log.error("the rescued store has a reference to nothing: %s", tuple(violation))


def _copy_rows(db: sqlite_utils.Database, source: DamagedFile) -> None:
    tables = [name for name in db.table_names() if not name.startswith(("sqlite_", "_sqlite_", "messages"))]
    for table in tables:
        for row in _of_schema(db, table, source.rows(table)):
            _insert(db, table, _without_unsound(row))
    db.executescript("""
        DELETE FROM attachments WHERE document_id NOT IN (SELECT id FROM documents);
        DELETE FROM message_attachments WHERE attachment_id NOT IN (SELECT id FROM attachments);
    """)
    # Messages come after their attachments, which could not be added to a final message.
    _insert_messages(db, _of_schema(db, "messages", source.messages()))
    db.executescript("""
        INSERT INTO conversations (id, title, renamed, created_at, updated_at)
            SELECT conversation_id, 'Rescued conversation', 1, min(created_at), max(created_at) FROM messages
            WHERE conversation_id NOT IN (SELECT id FROM conversations) GROUP BY conversation_id;
        UPDATE conversations
            SET leaf_id = (SELECT max(id) FROM messages WHERE conversation_id = conversations.id)
            WHERE NOT EXISTS (SELECT 1 FROM messages WHERE messages.id = leaf_id
                              AND conversation_id = conversations.id);
        DELETE FROM message_attachments WHERE message_id NOT IN (SELECT id FROM messages);
    """)
    for table in _OF_CONVERSATIONS.intersection(tables):
        db.execute(f"DELETE FROM {table} WHERE conversation_id NOT IN (SELECT id FROM conversations)")
    for table in (each for each in _OF_OTHERS if each in tables):
        for column, owner in _OF_OTHERS[table].items():
            db.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM {owner})")
    if "reading_segments" in tables:
        _fill_gaps(db)


def _fill_gaps(db: sqlite_utils.Database) -> None:
    """Put unread segments in the place of those that unfinished readings have lost.

    One without any is deleted, so that it is begun anew.
    """
    unfinished = db.execute(
        """SELECT readings.id, documents.text FROM readings JOIN attachments ON attachments.id = attachment_id
           JOIN documents ON documents.id = document_id WHERE readings.text = '' AND way = 'segments'"""
    )
    for reading_id, text in unfinished.fetchall():
        sql = "SELECT * FROM reading_segments WHERE reading_id = ? ORDER BY position"
        found = [dict(row) for row in db.execute(sql, (reading_id,))]
        db.execute("DELETE FROM reading_segments WHERE reading_id = ?", (reading_id,))
        longest = max((row["stop"] - row["start"] for row in found), default=0)
        if longest <= 0:
            db.execute("DELETE FROM readings WHERE id = ?", (reading_id,))
            continue
        place, rows = 0, list[Row]()
        for row in found:
            rows += [*_unread(text, place, row["start"], longest), row]
            place = row["stop"]
        rows += _unread(text, place, len(text), longest)
        for position, row in enumerate(rows):
            _insert(
                db, "reading_segments", row | {"id": None, "reading_id": reading_id, "position": position}
            )


def _unread(text: str, start: int, stop: int, longest: int) -> Iterator[Row]:
    """Yield segments of a stretch of a text that has any words, each of so many characters at most."""
    while text[start:stop].strip():
        end = min(start + longest, stop)
        if end < stop:
            end = text.rfind(" ", start, end) + 1 or end
        yield {"start": start, "stop": end, "state": "unread", "note": "", "is_extract": 0, "error": ""}
        start = end


def _of_schema(db: sqlite_utils.Database, table: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Leave out columns that the new file does not have.

    An old file whose schema is lost was read with today's, which may have more.
    """
    known = {column.name for column in db.table(table).columns}
    for row in rows:
        yield {name: value for name, value in row.items() if name in known}


def _without_unsound(row: Row) -> Row:
    """Leave out values of a wrong type: they would cost a conversation its title, or a document its text."""
    return {
        name: None if isinstance(value, _UNSOUND_TYPES.get(name, ())) else value
        for name, value in row.items()
    }


def _insert_messages(db: sqlite_utils.Database, rows: Iterable[Row]) -> None:
    """Insert messages; one whose parent is lost goes below the message before it in its conversation.

    A damaged role or state does not cost the text: the role is then what usually stands in that place.
    """
    previous: dict[object, object] = {}
    conversation_of: dict[object, object] = {}
    for row in rows:
        message_id, conversation_id, parent_id = row["id"], row["conversation_id"], row["parent_id"]
        if parent_id is not None and conversation_of.get(parent_id) != conversation_id:
            row["parent_id"] = previous.get(conversation_id)
        if row["role"] not in ROLES:
            row["role"] = (Role.USER if row["parent_id"] is None else Role.ASSISTANT).value
        if row["state"] not in STATES:
            row["state"] = MessageState.INTERRUPTED.value
        if _insert(db, "messages", row):
            previous[conversation_id] = message_id
            conversation_of[message_id] = conversation_id


def _insert(db: sqlite_utils.Database, table: str, row: Row) -> bool:
    columns = ", ".join(f'"{column}"' for column in row)
    places = ", ".join("?" * len(row))
    try:
        db.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({places})', list(row.values()))
    except sqlite3.IntegrityError as error:
        # Damaged rows that can be read break the rules of the schema.
        log.warning("a row of %s is lost: %s", table, error)
        return False
    return True
