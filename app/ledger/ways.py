"""By which way documents of a path are read for its questions, and what was read of them.

A document that was chosen to be read in segments is read so once: for the questions that follow there are
its notes, and it is looked up, until segments are chosen anew. That follows from what was read; only the
choice is stored.
"""

from __future__ import annotations

from app.documents.ways import DocumentWay
from app.ledger.records import ItemMark, LedgerRows, attachment_key
from app.ledger.standing import PathItems, Standing, document_keys, pending_turn
from app.reading.records import Reading, SourceKind, written_readings
from app.store.records import Attachment, Role


class DocumentWays:
    """The ways of the documents of one path."""

    def __init__(self, items: PathItems, standing: Standing, rows: LedgerRows) -> None:
        self._items = items
        self._standing = standing
        self._rows = rows
        pending = pending_turn(items.turns)
        self.question_id = None if pending is None else items.turns[pending][-1].id
        """The question that waits for its answer, None where none does."""
        self._path = [message.id for turn in items.turns for message in turn]

    def way(self, key: str, message_id: int | None = None) -> DocumentWay | None:
        """Return how a document is read for a question; None while that is not decided.

        Args:
            key: of the document, which may be a draft.
            message_id: the question; None for the one that waits, or else for the next one.
        """
        mark = self._mark(key)
        if mark.way is DocumentWay.SEGMENTS and self._was_read(mark, message_id):
            return DocumentWay.LOOK_UP
        return mark.way

    def told_way(self, key: str) -> DocumentWay | None:
        """Return how a document was read for the question that it came with, or is to be while that waits.

        As the answer that is on the path was written: another one to the same question may have been written
        from something else.
        """
        turn = self._items.turns[self._items.turn_of[key]]
        question_id = next(each.id for each in turn if key in document_keys([each]))
        answer = next((each for each in turn if each.role is Role.ASSISTANT), None)
        if answer is None:
            return self.way(key, question_id)
        kinds = {each.kind for each in answer.sources if attachment_key(each.attachment_id) == key}
        if SourceKind.NOTED in kinds:
            return DocumentWay.SEGMENTS
        if SourceKind.LOOKED_AT in kinds:
            return DocumentWay.LOOK_UP
        found = self.reading(key, question_id)
        if found is None or SourceKind.ATTENDED in kinds:
            return DocumentWay.WHOLE
        is_of_another = (
            self.is_whole(key)
            if answer.stats is None
            else found.way is DocumentWay.SEGMENTS and not answer.stats.segments
        )
        return DocumentWay.WHOLE if is_of_another else found.way

    def document(self, key: str) -> Attachment:
        """Return a document of the path."""
        return self._items.documents[key]

    def is_whole(self, key: str) -> bool:
        """Return whether a document stands in the context with all its words, as while nothing is decided."""
        return self._mark(key).way in (None, DocumentWay.WHOLE)

    def is_available(self, key: str) -> bool:
        """Return whether a document may be read for the question that waits, or the next one.

        One that is not read whole is even where its turn is not read: only left out or summarized itself it
        is not.
        """
        unread = self._standing.dropped_documents | self._standing.summarized_documents
        return key in self._items.documents and key not in unread

    def to_read(self) -> tuple[tuple[Attachment, DocumentWay], ...]:
        """Return the documents that are read in segments or looked up for the question that waits."""
        if self.question_id is None:
            return ()
        return tuple(
            (document, way)
            for key, document in self._items.documents.items()
            if (way := self.way(key)) not in (None, DocumentWay.WHOLE) and self.is_available(key)
        )

    def undecided(self) -> tuple[Attachment, ...]:
        """Return the documents in the context of which it is not decided how they are read."""
        unread = self._standing.turn_summaries.keys() | self._standing.dropped_turns
        return tuple(
            document
            for key, document in self._items.documents.items()
            if self._mark(key).way is None
            and self.is_available(key)
            and self._items.turn_of[key] not in unread
        )

    def reading(self, key: str, message_id: int) -> Reading | None:
        """Return what is stored of reading a document for a question."""
        found = (each for each in self._rows.readings if each.message_id == message_id)
        return next((each for each in found if attachment_key(each.attachment_id) == key), None)

    def readings(self, message_id: int) -> tuple[Reading, ...]:
        """Return the readings for a question that it is answered from, in the order of their documents.

        Not those of documents that are read whole or left out, nor, for the question that waits, those by
        another way than is chosen now.
        """
        own = [each for each in self._rows.readings if each.message_id == message_id]
        by_key = {attachment_key(each.attachment_id): each for each in reversed(own)}
        found = (by_key[key] for key in self._items.documents if key in by_key)
        return tuple(each for each in found if self._is_read(each))

    def written_readings(self, message_id: int) -> tuple[Reading, ...]:
        """Return those of the readings for a question that the model reads with it."""
        return written_readings(self.readings(message_id))

    def _is_read(self, reading: Reading) -> bool:
        key = attachment_key(reading.attachment_id)
        if not reading.is_done or self.is_whole(key) or key in self._standing.dropped_documents:
            return False
        return reading.message_id != self.question_id or reading.way is self.way(key)

    def _mark(self, key: str) -> ItemMark:
        return self._rows.marks.get(key, ItemMark(key))

    def _was_read(self, mark: ItemMark, message_id: int | None) -> bool:
        """Return whether a document was read in segments since that was chosen, for a question before."""
        asked = self.question_id if message_id is None else message_id
        before = self._path[: self._path.index(asked)] if asked in self._path else self._path
        return any(
            each.is_done
            and each.way is DocumentWay.SEGMENTS
            and each.id > mark.after_reading
            and attachment_key(each.attachment_id) == mark.key
            and each.message_id in before
            for each in self._rows.readings
        )
