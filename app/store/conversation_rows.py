"""Rows of the table of conversations, and what stands in them."""

from __future__ import annotations

import json
import logging
import sqlite3

import sqlite_utils

from app.profiles import Profile, profile_table, read_profile
from app.store.errors import NotFoundError, StoreError
from app.store.records import Conversation
from app.store.text import moment
from app.valid_unicode import valid_unicode
from engine.errors import OctavoError

log = logging.getLogger(__name__)


def update(db: sqlite_utils.Database, conversation_id: int, assignments: str, *values: object) -> None:
    """Change columns of a conversation that is not deleted."""
    living(db, conversation_id)
    db.execute(f"UPDATE conversations SET {assignments} WHERE id = ?", (*values, conversation_id))


def living(db: sqlite_utils.Database, conversation_id: int) -> sqlite3.Row:
    """Return the row of a conversation that is not deleted; a `NotFoundError` says that there is none."""
    sql = "SELECT * FROM conversations WHERE id = ? AND deleted_at IS NULL"
    row: sqlite3.Row | None = db.execute(sql, (conversation_id,)).fetchone()
    if row is None:
        raise NotFoundError("This conversation no longer exists.")
    return row


def title(text: str) -> str:
    """Return a title as it is kept, on one line; a `StoreError` says that it is empty."""
    cleaned = " ".join(valid_unicode(text).split())
    if not cleaned:
        raise StoreError("A conversation needs a title.")
    return cleaned


def record(row: sqlite3.Row) -> Conversation:
    """Return a row as plain data."""
    return Conversation(
        id=row["id"],
        title=row["title"],
        created_at=moment(row["created_at"]),
        updated_at=moment(row["updated_at"]),
        pinned=bool(row["pinned"]),
        leaf_id=row["leaf_id"],
        draft=row["draft"],
        profile=_profile(row),
    )


def profile_text(profile: Profile | None) -> str | None:
    """Return a profile as it is stored."""
    return None if profile is None else json.dumps(profile_table(profile))


def _profile(row: sqlite3.Row) -> Profile | None:
    # Settings are not worth a conversation: those that cannot be read are as if they had not been chosen.
    if row["profile"] is None:
        return None
    try:
        return read_profile(json.loads(row["profile"]))
    except (ValueError, RecursionError, OctavoError) as error:
        log.warning("the profile of conversation %d cannot be read: %s", row["id"], error)
        return None
