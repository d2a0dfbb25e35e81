"""The sources of replies; they are final as their message is."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Sequence

import sqlite_utils

from app.reading.records import Source, SourceKind

log = logging.getLogger(__name__)


def insert_sources(db: sqlite_utils.Database, message_id: int, sources: Sequence[Source]) -> None:
    """Give a reply that is STREAMING its sources."""
    for position, source in enumerate(sources):
        db.execute(
            """INSERT INTO sources (message_id, position, number, attachment_id, start, stop, kind, is_cited,
               share) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                message_id,
                position,
                source.number,
                source.attachment_id,
                source.start,
                source.stop,
                source.kind.value,
                source.is_cited,
                source.share,
            ),
        )


def sources_of(db: sqlite_utils.Database, message_ids: Iterable[int]) -> dict[int, tuple[Source, ...]]:
    """Return the sources of those messages that have any, in order."""
    rows = db.execute(
        """SELECT * FROM sources WHERE message_id IN (SELECT value FROM json_each(?))
           ORDER BY message_id, position""",
        (json.dumps(list(message_ids)),),
    )
    found: dict[int, tuple[Source, ...]] = {}
    for row in rows:
        source = _source(row)
        if source is not None:
            found[row["message_id"]] = (*found.get(row["message_id"], ()), source)
    return found


def _source(row: sqlite3.Row) -> Source | None:
    # A source is not worth a message: one that cannot be read is left out.
    try:
        kind = SourceKind(row["kind"])
    except ValueError:
        log.warning("a source of message %d cannot be read: %s", row["message_id"], row["kind"])
        return None
    return Source(
        number=row["number"],
        attachment_id=row["attachment_id"],
        start=row["start"],
        stop=row["stop"],
        kind=kind,
        is_cited=bool(row["is_cited"]),
        share=row["share"],
    )
