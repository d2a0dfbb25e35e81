"""Where what is read of documents is kept while it grows: the store, or memory for a single question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment


class ReadingKeeper(Protocol):
    """Keeps readings; `ConversationStore` is one."""

    def begin_reading(
        self,
        message_id: int,
        attachment_id: int,
        way: DocumentWay,
        model: str,
        segments: Sequence[ReadSegment],
    ) -> Reading:
        """Return the reading of a document for a question; the one that is kept where it has the same
        way, model and places."""

    def reading_segments(self, reading_id: int) -> tuple[ReadSegment, ...]:
        """Return the segments of a reading, in order."""

    def save_segment(self, reading_id: int, index: int, segment: ReadSegment) -> None:
        """Keep what was read of a segment."""

    def finish_reading(self, reading_id: int, text: str) -> Reading:
        """Keep what the model reads of a document; it never changes then."""
