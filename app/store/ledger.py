"""What is stored of a conversation's context: marks of its messages and attachments, and summaries.

A row that cannot be read is as if it were not there: the model then reads the messages themselves.
"""

from __future__ import annotations

import json
import logging
import sqlite3

import sqlite_utils

from app.documents.ways import DocumentWay
from app.ledger.records import (
    ContextChange,
    ItemMark,
    LedgerRows,
    Summary,
    SummarySource,
    SummaryState,
)
from app.store.errors import NotFoundError
from app.store.readings import readings_of
from app.valid_unicode import valid_unicode

log = logging.getLogger(__name__)


def read_rows(db: sqlite_utils.Database, conversation_id: int) -> LedgerRows:
    """Return the marks and summaries of a conversation, and what was read of its documents."""
    found = db.execute("SELECT * FROM context_marks WHERE conversation_id = ?", (conversation_id,))
    marks = [_mark_record(row) for row in found]
    found = db.execute("SELECT * FROM summaries WHERE conversation_id = ? ORDER BY id", (conversation_id,))
    summaries = (_summary(row) for row in found)
    readings = readings_of(db, conversation_id)
    return LedgerRows({mark.key: mark for mark in marks}, tuple(filter(None, summaries)), readings)


def change(db: sqlite_utils.Database, conversation_id: int, wanted: ContextChange) -> ContextChange:
    """Set marks, and states of summaries; return what sets them back to what they were.

    Raises:
        NotFoundError: a summary is not one of the conversation.
    """
    marks = {mark.key: mark for mark in wanted.marks}
    states = dict(wanted.summaries)
    former_marks = tuple(_mark(db, conversation_id, key) for key in marks)
    former_states = tuple((each, _state(db, conversation_id, each)) for each in states)
    for mark in marks.values():
        _set_mark(db, conversation_id, mark)
    for summary_id, state in states.items():
        db.execute("UPDATE summaries SET state = ? WHERE id = ?", (state.value, summary_id))
    return ContextChange(former_marks, former_states)


def insert_summary(db: sqlite_utils.Database, conversation_id: int, summary: Summary) -> Summary:
    """Add a summary and return it with its id."""
    ((summary_id,),) = db.execute(
        """INSERT INTO summaries (conversation_id, text, covers, source, note, model, source_tokens,
           num_tokens, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (
            conversation_id,
            valid_unicode(summary.text),
            json.dumps(summary.covers),
            summary.source.value,
            valid_unicode(summary.note),
            valid_unicode(summary.model),
            summary.source_tokens,
            summary.num_tokens,
            summary.state.value,
        ),
    ).fetchall()
    row = db.execute("SELECT * FROM summaries WHERE id = ?", (summary_id,)).fetchone()
    return _record(row)


def _mark(db: sqlite_utils.Database, conversation_id: int, key: str) -> ItemMark:
    sql = "SELECT * FROM context_marks WHERE conversation_id = ? AND key = ?"
    row = db.execute(sql, (conversation_id, key)).fetchone()
    return ItemMark(key) if row is None else _mark_record(row)


def _mark_record(row: sqlite3.Row) -> ItemMark:
    return ItemMark(
        row["key"], bool(row["pinned"]), bool(row["dropped"]), _way(row["way"]), row["after_reading"]
    )


def _way(text: str | None) -> DocumentWay | None:
    try:
        return None if text is None else DocumentWay(text)
    except ValueError:
        log.warning("there is no way to read a document called %s", text)
        return None


def _set_mark(db: sqlite_utils.Database, conversation_id: int, mark: ItemMark) -> None:
    if mark == ItemMark(mark.key):
        sql = "DELETE FROM context_marks WHERE conversation_id = ? AND key = ?"
        db.execute(sql, (conversation_id, mark.key))
        return
    db.execute(
        """INSERT INTO context_marks (conversation_id, key, pinned, dropped, way, after_reading)
           VALUES (?, ?, ?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET pinned = excluded.pinned, dropped = excluded.dropped,
               way = excluded.way, after_reading = excluded.after_reading""",
        (
            conversation_id,
            mark.key,
            mark.is_pinned,
            mark.is_dropped,
            None if mark.way is None else mark.way.value,
            mark.after_reading,
        ),
    )


def delete_mark(db: sqlite_utils.Database, key: str) -> None:
    """Delete the mark of an item that is deleted itself."""
    db.execute("DELETE FROM context_marks WHERE key = ?", (key,))


def _state(db: sqlite_utils.Database, conversation_id: int, summary_id: int) -> SummaryState:
    sql = "SELECT state FROM summaries WHERE id = ? AND conversation_id = ?"
    row = db.execute(sql, (summary_id, conversation_id)).fetchone()
    if row is None:
        raise NotFoundError("This summary no longer exists.")
    try:
        return SummaryState(row["state"])
    except ValueError:
        return SummaryState.RETIRED


def _summary(row: sqlite3.Row) -> Summary | None:
    try:
        return _record(row)
    except (ValueError, TypeError, RecursionError) as error:
        log.warning("summary %d cannot be read: %s", row["id"], error)
        return None


def _record(row: sqlite3.Row) -> Summary:
    covers = json.loads(row["covers"])
    if not isinstance(covers, list) or not all(isinstance(key, str) for key in covers):
        raise TypeError(f"not a list of keys: {covers!r}")
    return Summary(
        id=row["id"],
        text=row["text"],
        covers=tuple(covers),
        source=SummarySource(row["source"]),
        note=row["note"],
        model=row["model"],
        source_tokens=row["source_tokens"],
        num_tokens=row["num_tokens"],
        state=SummaryState(row["state"]),
    )
