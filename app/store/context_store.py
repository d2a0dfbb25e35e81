"""Contexts, readings of documents, and the speeds at which models read, in the file of the conversations."""

from __future__ import annotations

from collections.abc import Sequence

from app.documents.ways import DocumentWay
from app.ledger.records import NO_CHANGE, ContextChange, LedgerRows, Summary
from app.reading.records import Reading, ReadSegment, SegmentState
from app.store import conversation_rows as rows
from app.store import ledger, readings
from app.store.connection import StoreConnection
from app.valid_unicode import valid_unicode


class ContextStore:
    """What models read of conversations; a part of `ConversationStore`, whose rules hold here, too."""

    def __init__(self, connection: StoreConnection) -> None:
        self._connection = connection

    def ledger(self, conversation_id: int) -> LedgerRows:
        """Return what is stored of a conversation's context."""
        with self._connection.read() as db:
            rows.living(db, conversation_id)
            return ledger.read_rows(db, conversation_id)

    def change_context(self, conversation_id: int, change: ContextChange) -> ContextChange:
        """Change what is stored of a conversation's context; return the change that undoes it."""
        with self._connection.write() as db:
            rows.living(db, conversation_id)
            return ledger.change(db, conversation_id, change)

    def add_summary(
        self, conversation_id: int, summary: Summary, change: ContextChange = NO_CHANGE
    ) -> Summary:
        """Add a summary, whose `id` counts for nothing, and make a change with it; return it as stored."""
        (stored,) = self.add_summaries(conversation_id, [summary], change)
        return stored

    def add_summaries(
        self, conversation_id: int, summaries: Sequence[Summary], change: ContextChange = NO_CHANGE
    ) -> tuple[Summary, ...]:
        """Add several summaries and make a change with them, all or nothing; return them as stored."""
        with self._connection.write() as db:
            rows.living(db, conversation_id)
            ledger.change(db, conversation_id, change)
            return tuple(ledger.insert_summary(db, conversation_id, each) for each in summaries)

    def begin_reading(
        self,
        message_id: int,
        attachment_id: int,
        way: DocumentWay,
        model: str,
        segments: Sequence[ReadSegment],
    ) -> Reading:
        """Begin to read a document for a question, or go on.

        Where it is stored by the same way, with the same model and the same places, that is returned, as far
        as it has come; whatever else was read of the document for this question is replaced. A document of
        another conversation is a `NotFoundError`.

        Args:
            message_id: the question.
            attachment_id: the document.
            way: SEGMENTS or LOOK_UP.
            model: the name of the model that reads.
            segments: in order, as they are before anything was read; passages looked at are READ.
        """
        with self._connection.write() as db:
            wanted = message_id, attachment_id, way, model, segments
            stored = readings.stored_reading(db, *wanted)
            return readings.insert_reading(db, *wanted) if stored is None else stored

    def reading_segments(self, reading_id: int) -> tuple[ReadSegment, ...]:
        """Return the segments of a reading, in order; none where there is no such reading any more."""
        with self._connection.read() as db:
            return readings.segments_of(db, reading_id)

    def save_segment(self, reading_id: int, index: int, segment: ReadSegment) -> None:
        """Keep what became of a segment of a reading that is not finished.

        Raises:
            NotFoundError: another reading has taken its place.
            StoreError: it is finished, or the segment has another place in the document.
        """
        with self._connection.write() as db:
            readings.update_segment(db, reading_id, index, segment)

    def finish_reading(self, reading_id: int, text: str) -> Reading:
        """Give a reading the text that the model reads of it, after which it never changes; return it.

        Segments may still be unread, as when the answer is to be written from what was read.
        """
        if not text:
            raise ValueError("a reading without a text is not finished")
        with self._connection.write() as db:
            readings.require_unfinished(db, reading_id)
            db.execute("UPDATE readings SET text = ? WHERE id = ?", (valid_unicode(text), reading_id))
            return readings.reading(db, reading_id)

    def reopen_reading(self, reading_id: int) -> Reading:
        """Put an unfinished reading in the place of one, with what was read so far; return it.

        Segments that failed are to be tried again.
        """
        with self._connection.write() as db:
            former = readings.reading(db, reading_id)
            segments = [
                ReadSegment(each.start, each.stop) if each.state is SegmentState.FAILED else each
                for each in readings.segments_of(db, reading_id)
            ]
            return readings.insert_reading(
                db, former.message_id, former.attachment_id, former.way, former.model, segments
            )

    def speed(self, model: str) -> str | None:
        """Return how fast a model reads and writes here, as it was saved; None where that is not known."""
        with self._connection.read() as db:
            row = db.execute("SELECT speed FROM speeds WHERE model = ?", (valid_unicode(model),)).fetchone()
            return None if row is None else str(row["speed"])

    def save_speed(self, model: str, speed: str) -> None:
        """Keep how fast a model reads and writes here."""
        with self._connection.write() as db:
            db.execute(
                """INSERT INTO speeds (model, speed) VALUES (?, ?)
                   ON CONFLICT DO UPDATE SET speed = excluded.speed""",
                (valid_unicode(model), valid_unicode(speed)),
            )
