"""The tree of messages; a path with all that belongs to it takes six queries, however long it is."""

from __future__ import annotations

import dataclasses
import json
import logging
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlite_utils

from app.reading.records import Source
from app.store.attachments import attachments_of
from app.store.errors import DamagedStoreError, NotFoundError, StoreError
from app.store.records import Attachment, Message, MessageState, Role
from app.store.sources import sources_of
from app.store.text import moment
from engine.events import GenerationStats, StopReason
from engine.kv.usage import KVUsage

log = logging.getLogger(__name__)


def now_text() -> str:
    """Return the time as it is stored: UTC, of one width, so that it sorts as text."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def stats_text(stats: GenerationStats | None) -> str | None:
    """Return the figures of a reply as they are stored."""
    if stats is None:
        return None
    return json.dumps({**dataclasses.asdict(stats), "stop_reason": stats.stop_reason.value})


def place_of(db: sqlite_utils.Database, message_id: int) -> tuple[int, int | None]:
    """Return the conversation and the parent of a message."""
    sql = "SELECT conversation_id, parent_id FROM messages WHERE id = ?"
    row = db.execute(sql, (message_id,)).fetchone()
    if row is None:
        raise NotFoundError("This message no longer exists.")
    return row["conversation_id"], row["parent_id"]


def require_message(db: sqlite_utils.Database, conversation_id: int, message_id: int) -> None:
    """Raise a `NotFoundError` when a message is not in a conversation."""
    if place_of(db, message_id)[0] != conversation_id:
        raise NotFoundError("This message belongs to another conversation.")


def insert_message(
    db: sqlite_utils.Database,
    conversation_id: int,
    parent_id: int | None,
    role: Role,
    text: str,
    model: str | None,
    created_at: str,
) -> int:
    """Add a message below `parent_id` in the state STREAMING and return its id."""
    if parent_id is not None:
        require_message(db, conversation_id, parent_id)
    ((message_id,),) = db.execute(
        """INSERT INTO messages (conversation_id, parent_id, role, text, created_at, state, model)
           VALUES (?, ?, ?, ?, ?, 'streaming', ?) RETURNING id""",
        (conversation_id, parent_id, role.value, text, created_at, model),
    ).fetchall()
    return int(message_id)


def update_reply(db: sqlite_utils.Database, message_id: int, assignments: str, *values: object) -> None:
    """Change a message that is STREAMING; raise a `StoreError` when it is final."""
    sql = f"UPDATE messages SET {assignments} WHERE id = ? AND state = 'streaming'"
    if not db.execute(sql, (*values, message_id)).rowcount:
        place_of(db, message_id)
        raise StoreError("This reply is finished and can no longer change.")


def ancestry(db: sqlite_utils.Database, message_id: int, limit: int | None) -> list[Message]:
    """Return a message and what is above it, at most `limit` messages, the topmost first."""
    place_of(db, message_id)
    rows = db.execute(
        """WITH RECURSIVE up (id, parent_id) AS (
               SELECT id, parent_id FROM messages WHERE id = ?
               UNION ALL
               SELECT messages.id, messages.parent_id FROM up
               JOIN messages ON messages.id = up.parent_id AND messages.id < up.id
               LIMIT ?
           )
           SELECT messages.* FROM up JOIN messages USING (id) ORDER BY id""",
        (message_id, -1 if limit is None else limit),
    ).fetchall()
    return _messages(db, rows)


def message(db: sqlite_utils.Database, message_id: int) -> Message:
    """Return one message."""
    rows = db.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchall()
    if not rows:
        raise NotFoundError("This message no longer exists.")
    return _messages(db, rows)[0]


def newest_descendant(db: sqlite_utils.Database, message_id: int) -> int:
    """Return the newest message below, or the message itself; being the newest, it is a leaf."""
    conversation_id, _ = place_of(db, message_id)
    (newest,) = db.execute(
        """WITH RECURSIVE down (id) AS (
               VALUES (?)
               UNION ALL
               SELECT messages.id FROM down
               JOIN messages ON messages.conversation_id = ? AND messages.parent_id = down.id
           )
           SELECT max(id) FROM down""",
        (message_id, conversation_id),
    ).fetchone()
    return int(newest)


def _messages(db: sqlite_utils.Database, rows: Sequence[sqlite3.Row]) -> list[Message]:
    ids = [row["id"] for row in rows]
    siblings = _siblings(db, ids)
    attachments, sources = attachments_of(db, ids), sources_of(db, ids)
    try:
        return [
            _record(row, siblings[row["id"]], attachments.get(row["id"], ()), sources.get(row["id"], ()))
            for row in rows
        ]
    except (ValueError, KeyError) as error:
        # A role or state that does not exist, or a row that its index does not know.
        raise DamagedStoreError(
            "A message in the store is damaged. Restart Octavo: it then rescues what can still be read."
        ) from error


def _siblings(db: sqlite_utils.Database, message_ids: Iterable[int]) -> dict[int, tuple[int, ...]]:
    rows = db.execute(
        """SELECT messages.id, group_concat(sibling.id) FROM messages
           JOIN messages AS sibling ON sibling.conversation_id = messages.conversation_id
                AND sibling.parent_id IS messages.parent_id
           WHERE messages.id IN (SELECT value FROM json_each(?)) GROUP BY messages.id""",
        (json.dumps(list(message_ids)),),
    )
    return {message_id: tuple(sorted(map(int, ids.split(",")))) for message_id, ids in rows}


def _record(
    row: sqlite3.Row,
    siblings: tuple[int, ...],
    attachments: tuple[Attachment, ...],
    sources: tuple[Source, ...],
) -> Message:
    return Message(
        id=row["id"],
        conversation_id=row["conversation_id"],
        parent_id=row["parent_id"],
        role=Role(row["role"]),
        text=row["text"],
        created_at=moment(row["created_at"]),
        state=MessageState(row["state"]),
        attachments=attachments,
        siblings=siblings,
        stats=_stats(row["id"], row["stats"]),
        model=row["model"],
        error=row["error"],
        sources=sources,
    )


def _stats(message_id: int, text: str | None) -> GenerationStats | None:
    # Figures are not worth a conversation: those that cannot be read are left out.
    if text is None:
        return None
    try:
        stored = _carried_over(json.loads(text))
        usage = stored["kv_usage"]
        read = {
            "kv_usage": None if usage is None or "sealed_nbytes" in usage else _usage(usage),
            "stop_reason": StopReason(stored["stop_reason"]),
        }
        return GenerationStats(**stored | read)
    except (ValueError, TypeError, KeyError):
        log.warning("the figures of message %d cannot be read: %s", message_id, text)
        return None


def _carried_over(stored: dict[str, Any]) -> dict[str, Any]:
    """Return figures in today's keys: the precision was once a whole number, and of the cache its bytes."""
    if "kv_bits" not in stored:
        return stored
    rest = {key: value for key, value in stored.items() if key not in ("kv_bits", "kv_nbytes")}
    return rest | {"kv": str(stored["kv_bits"]), "kv_usage": None}


def _usage(stored: dict[str, Any]) -> KVUsage:
    """Return the figures of a cache; JSON knows no tuples."""
    pairs = {key: tuple(stored[key]) for key in ("requested", "effective") if stored[key] is not None}
    return KVUsage(**stored | pairs)
