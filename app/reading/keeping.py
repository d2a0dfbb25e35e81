"""Where what is read of documents is kept while it grows: the store, or memory for a single question."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState


class ReadingKeeper(Protocol):
    """Keeps readings, as `ContextStore` does, whose words on each method hold here, too."""

    def begin_reading(
        self,
        message_id: int,
        attachment_id: int,
        way: DocumentWay,
        model: str,
        segments: Sequence[ReadSegment],
    ) -> Reading:
        """Begin to read a document for a question, or go on where it is kept by this way and model."""

    def reading_segments(self, reading_id: int) -> tuple[ReadSegment, ...]:
        """Return the segments of a reading, in order."""

    def save_segment(self, reading_id: int, index: int, segment: ReadSegment) -> None:
        """Keep what became of a segment."""

    def finish_reading(self, reading_id: int, text: str) -> Reading:
        """Keep what the model reads of a document; it never changes then."""

    def reopen_reading(self, reading_id: int) -> Reading:
        """Put an unfinished reading in the place of one, with what was read so far; return it."""


class PassingReadings:
    """Keeps the readings of a single question in memory, while it is answered."""

    def __init__(self) -> None:
        self._readings: dict[int, Reading] = {}
        self._segments: dict[int, list[ReadSegment]] = {}

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What has been read of each document, done or not."""
        return tuple(self._readings.values())

    def begin_reading(
        self,
        message_id: int,
        attachment_id: int,
        way: DocumentWay,
        model: str,
        segments: Sequence[ReadSegment],
    ) -> Reading:
        """Begin to read a document."""
        number = len(self._readings) + 1
        reading = Reading(number, message_id, attachment_id, way, model, "", len(segments), 0, 0)
        self._readings[number], self._segments[number] = reading, list(segments)
        return self._counted(number)

    def reading_segments(self, reading_id: int) -> tuple[ReadSegment, ...]:
        """Return the segments of a reading, in order."""
        return tuple(self._segments[reading_id])

    def save_segment(self, reading_id: int, index: int, segment: ReadSegment) -> None:
        """Keep what became of a segment."""
        self._segments[reading_id][index] = segment
        self._counted(reading_id)

    def finish_reading(self, reading_id: int, text: str) -> Reading:
        """Keep what the model reads of a document."""
        self._readings[reading_id] = dataclasses.replace(self._readings[reading_id], text=text)
        return self._readings[reading_id]

    def reopen_reading(self, reading_id: int) -> Reading:
        """Return the reading as one that is not finished."""
        self._readings[reading_id] = dataclasses.replace(self._readings[reading_id], text="")
        return self._readings[reading_id]

    def _counted(self, reading_id: int) -> Reading:
        states = [segment.state for segment in self._segments[reading_id]]
        self._readings[reading_id] = dataclasses.replace(
            self._readings[reading_id],
            num_read=states.count(SegmentState.READ),
            num_failed=states.count(SegmentState.FAILED),
        )
        return self._readings[reading_id]
