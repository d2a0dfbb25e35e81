"""What was read of documents for questions: one reading of each document for each question.

A row that cannot be read is as if it were not there: the document is then read again.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence

import sqlite_utils

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState
from app.store.errors import NotFoundError, StoreError
from app.valid_unicode import valid_unicode

log = logging.getLogger(__name__)

_SELECT = """
    SELECT readings.*, count(position) AS num_segments, coalesce(sum(state = 'read'), 0) AS num_read,
        coalesce(sum(state = 'failed'), 0) AS num_failed
    FROM readings LEFT JOIN reading_segments ON reading_id = readings.id
"""


def readings_of(db: sqlite_utils.Database, conversation_id: int) -> tuple[Reading, ...]:
    """Return the readings of a conversation, oldest first."""
    sql = f"{_SELECT} WHERE conversation_id = ? GROUP BY readings.id ORDER BY readings.id"
    readings = (_record(row) for row in db.execute(sql, (conversation_id,)))
    return tuple(filter(None, readings))


def reading(db: sqlite_utils.Database, reading_id: int) -> Reading:
    """Return one reading."""
    row = db.execute(f"{_SELECT} WHERE readings.id = ? GROUP BY readings.id", (reading_id,)).fetchone()
    found = None if row is None else _record(row)
    if found is None:
        raise NotFoundError("What was read of this document no longer exists.")
    return found


def stored_reading(
    db: sqlite_utils.Database,
    message_id: int,
    attachment_id: int,
    way: DocumentWay,
    model: str,
    segments: Sequence[ReadSegment],
) -> Reading | None:
    """Return the reading of a document for a question where it is by this way, model and these segments."""
    sql = "SELECT id FROM readings WHERE message_id = ? AND attachment_id = ? AND way = ? AND model = ?"
    row = db.execute(sql, (message_id, attachment_id, way.value, valid_unicode(model))).fetchone()
    if row is None:
        return None
    spans = [(each.start, each.stop) for each in segments_of(db, row["id"])]
    return reading(db, row["id"]) if spans == [(each.start, each.stop) for each in segments] else None


def insert_reading(
    db: sqlite_utils.Database,
    message_id: int,
    attachment_id: int,
    way: DocumentWay,
    model: str,
    segments: Sequence[ReadSegment],
) -> Reading:
    """Begin a reading, in the place of any other of the same document for the same question."""
    conversation_id = _common_conversation(db, message_id, attachment_id)
    db.execute("DELETE FROM readings WHERE message_id = ? AND attachment_id = ?", (message_id, attachment_id))
    ((reading_id,),) = db.execute(
        """INSERT INTO readings (conversation_id, message_id, attachment_id, way, model)
           VALUES (?, ?, ?, ?, ?) RETURNING id""",
        (conversation_id, message_id, attachment_id, way.value, valid_unicode(model)),
    ).fetchall()
    for position, segment in enumerate(segments):
        db.execute(
            """INSERT INTO reading_segments (reading_id, position, start, stop, state, note, is_extract,
               error) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (reading_id, position, segment.start, segment.stop, *_values(segment)),
        )
    return reading(db, reading_id)


def segments_of(db: sqlite_utils.Database, reading_id: int) -> tuple[ReadSegment, ...]:
    """Return the segments of a reading, in order."""
    sql = "SELECT * FROM reading_segments WHERE reading_id = ? ORDER BY position"
    return tuple(_segment(row) for row in db.execute(sql, (reading_id,)))


def update_segment(db: sqlite_utils.Database, reading_id: int, index: int, segment: ReadSegment) -> None:
    """Keep what became of a segment, whose place stays what it is."""
    require_unfinished(db, reading_id)
    changed = db.execute(
        """UPDATE reading_segments SET state = ?, note = ?, is_extract = ?, error = ?
           WHERE reading_id = ? AND position = ? AND start = ? AND stop = ?""",
        (*_values(segment), reading_id, index, segment.start, segment.stop),
    )
    if not changed.rowcount:
        raise StoreError("This segment of the document is not one of those that are being read.")


def require_unfinished(db: sqlite_utils.Database, reading_id: int) -> None:
    """Raise a `StoreError` where a reading is finished, a `NotFoundError` where there is none."""
    if reading(db, reading_id).is_done:
        raise StoreError("This document has been read for this question, and its notes can no longer change.")


def _common_conversation(db: sqlite_utils.Database, message_id: int, attachment_id: int) -> int:
    row = db.execute(
        """SELECT messages.conversation_id FROM messages JOIN attachments USING (conversation_id)
           WHERE messages.id = ? AND attachments.id = ?""",
        (message_id, attachment_id),
    ).fetchone()
    if row is None:
        raise NotFoundError("The question or its document no longer exists.")
    return int(row["conversation_id"])


def _values(segment: ReadSegment) -> tuple[object, ...]:
    return (
        segment.state.value,
        valid_unicode(segment.note),
        segment.is_extract,
        valid_unicode(segment.error),
    )


def _segment(row: sqlite3.Row) -> ReadSegment:
    try:
        state = SegmentState(row["state"])
    except ValueError:
        log.warning("a segment of reading %d cannot be read", row["reading_id"])
        return ReadSegment(row["start"], row["stop"])
    return ReadSegment(row["start"], row["stop"], state, row["note"], bool(row["is_extract"]), row["error"])


def _record(row: sqlite3.Row) -> Reading | None:
    try:
        way = DocumentWay(row["way"])
    except ValueError:
        log.warning("reading %d cannot be read: %s", row["id"], row["way"])
        return None
    return Reading(
        id=row["id"],
        message_id=row["message_id"],
        attachment_id=row["attachment_id"],
        way=way,
        model=row["model"],
        text=row["text"],
        num_segments=row["num_segments"],
        num_read=row["num_read"],
        num_failed=row["num_failed"],
    )
