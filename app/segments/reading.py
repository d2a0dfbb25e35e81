"""Reading one document in segments, each alone with the question; each is kept once it has been read."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Generator, Iterator, Sequence
from itertools import count as numbers_from

from app.document_prompt import Passage
from app.documents.places import Places
from app.reading.keeping import ReadingKeeper
from app.reading.question import ReadableDocument
from app.reading.records import Reading, ReadSegment, SegmentState
from app.segments.notes import NoteTaker
from app.segments.numbering import NumberedNote, counts
from app.segments.progress import SegmentEvent, SegmentProgress
from app.segments.prompts import segment_passage
from app.segments.splitting import TableHeads
from app.sources.evidence import fitting_sentence
from engine.errors import OctavoError, sentence_of

log = logging.getLogger(__name__)

MOST_TRIES = 2
"""How often a segment is read that cannot be read."""


class SegmentedDocument:
    """A document that is read in segments: its segments as the model reads them, and where they stand."""

    def __init__(self, document: ReadableDocument, segment_tokens: int) -> None:
        self.document = document
        self.places = Places.of(document.text, document.kind, document.page_starts)
        self._heads = TableHeads(document.text, segment_tokens)

    def words(self, segment: ReadSegment) -> str:
        """Return the words of a segment, behind the head of the table that it goes on with."""
        return self._heads.before(segment.start) + self.document.text[segment.start : segment.stop]

    def place(self, segment: ReadSegment) -> str:
        """Return where a segment begins, such as `p. 12, 3.2 Methods`."""
        return self.places.at(segment.start).words

    def passage(self, segment: ReadSegment) -> Passage:
        """Return a segment as the model reads it."""
        return segment_passage(self.document.title, self.place(segment), self.words(segment))


class SegmentClock:
    """Numbers the segments of all documents of a question, and tells how long the rest of them takes.

    Attributes:
        total: segments of all documents, those that were read before included.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._number = 0
        self._num_timed = 0
        self._timed_s = 0.0
        self._num_left = total

    def add_read(self, count: int) -> None:
        """Count segments of documents of which nothing is left to read, as passed."""
        self.total += count
        self._number += count

    def skip(self) -> None:
        """Pass a segment that has been read, or is not to be."""
        self._number += 1
        self._num_left -= 1

    def begin(self, title: str) -> SegmentProgress:
        """Return what is told while the next segment is read."""
        self._number += 1
        left_s = self._num_left * self._timed_s / self._num_timed if self._num_timed else None
        return SegmentProgress(self._number, self.total, title, seconds_left=left_s)

    def end(self, seconds: float) -> None:
        """Count a segment that took so long."""
        self._num_timed += 1
        self._timed_s += seconds
        self._num_left -= 1

    @property
    def number(self) -> int:
        """The last segment that was begun or passed."""
        return self._number


class SegmentReading:
    """Reads the segments of one document that have not been read.

    Args:
        reading: as it is kept.
        segmented: the document.
        keeper: where each segment is kept.
        taker: takes the notes.
    """

    def __init__(
        self,
        reading: Reading,
        segmented: SegmentedDocument,
        keeper: ReadingKeeper,
        taker: NoteTaker,
    ) -> None:
        self.reading = reading
        self._segmented = segmented
        self._keeper = keeper
        self._taker = taker
        self._segments = list(keeper.reading_segments(reading.id))

    @property
    def segments(self) -> Sequence[ReadSegment]:
        """Its segments as they are now."""
        return self._segments

    def events(self, clock: SegmentClock, *, reads_on: bool) -> Iterator[SegmentEvent]:
        """Read what is unread, or failed before; yield how far it is.

        Raises:
            Cancelled: it was stopped; what has been read is kept.
            OctavoError: no segment of the document could be read; why the last one could not.
        """
        last_error: OctavoError | None = None
        for index, segment in enumerate(self._segments):
            if segment.state is SegmentState.READ or not reads_on:
                clock.skip()
                continue
            started_s = time.perf_counter()
            progress = clock.begin(self._segmented.document.title)
            last_error = (yield from self._read(index, progress)) or last_error
            clock.end(time.perf_counter() - started_s)
        if last_error is not None and not any(each.state is SegmentState.READ for each in self._segments):
            raise last_error

    def _read(
        self, index: int, progress: SegmentProgress
    ) -> Generator[SegmentEvent, None, OctavoError | None]:
        """Read a segment and keep what became of it; return why it could not be read."""
        place = self._segments[index]
        blank = ReadSegment(place.start, place.stop)
        last_error = OctavoError("The segment could not be read.")
        for _ in range(MOST_TRIES):
            try:
                note = yield from self._taker.note(
                    self._segmented.passage(blank), self._segmented.words(blank), progress
                )
            except OctavoError as error:
                log.warning("Segment %d could not be read: %s", index + 1, error)
                last_error = error
            else:
                read = dataclasses.replace(
                    blank, state=SegmentState.READ, note=note.text, is_extract=note.is_extract
                )
                self._keep(index, read)
                return None
        failed = dataclasses.replace(blank, state=SegmentState.FAILED, error=sentence_of(last_error))
        self._keep(index, failed)
        return last_error

    def _keep(self, index: int, segment: ReadSegment) -> None:
        self._segments[index] = segment
        self._keeper.save_segment(self.reading.id, index, segment)

    def fitting(self, question: str, most_tokens: int) -> str:
        """Return the sentence that fits a question best of the segments that say something about it.

        In the words of the document, as a model may have put together what is not said together. Empty where
        none fits, or it has more than `most_tokens`.
        """
        count = self._taker.count
        noted = (self._segmented.words(each) for each in self._segments if counts(each, self.reading.way))
        fitting = (fitting_sentence(question, words, most_tokens, count) for words in noted)
        return fitting_sentence(question, "\n\n".join(filter(None, fitting)), most_tokens, count)

    def notes(self, first_number: int) -> list[NumberedNote]:
        """Return the notes on it under numbers from `first_number` on."""
        noted = (each for each in self._segments if counts(each, self.reading.way))
        return [
            NumberedNote((number,), self._segmented.place(segment), segment.note)
            for number, segment in zip(numbers_from(first_number), noted, strict=False)
        ]
