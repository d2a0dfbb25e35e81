"""One question's run through its documents: those to be looked up together, the others segment by segment."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.reading.coverage import coverage_sentence
from app.reading.keeping import ReadingKeeper
from app.reading.passages import PassageFinder
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading.records import Reading, ReadSegment, SegmentState, written_readings
from app.segments.budget import most_fitting_tokens
from app.segments.joining import joined_notes
from app.segments.notes import NoteTaker
from app.segments.numbering import numbered
from app.segments.progress import SegmentEvent, SegmentProgress, SegmentStage
from app.segments.prompts import notes_text
from app.segments.reading import SegmentClock, SegmentedDocument, SegmentReading
from app.segments.splitting import split_text
from engine.cancel import CancelToken
from engine.events import Finished


@dataclass(frozen=True)
class DocumentReadings:
    """What was read of documents for a question.

    Attributes:
        readings: one for each document, in their order; done, unless it was stopped.
        peak_nbytes: the most memory that the engine took.
        seconds: how long it took.
    """

    readings: tuple[Reading, ...] = ()
    peak_nbytes: int = 0
    seconds: float = 0.0

    @property
    def num_segments(self) -> int:
        """How many segments were read, now or before."""
        return sum(each.num_read for each in self.readings if each.way is DocumentWay.SEGMENTS)

    def in_figures(self, finished: Finished) -> Finished:
        """Return the end of an answer with the figures as they are for the user, who waited for this, too."""
        stats = dataclasses.replace(
            finished.stats,
            ttft_s=finished.stats.ttft_s + self.seconds,
            segments=self.num_segments,
            peak_nbytes=max(finished.stats.peak_nbytes, self.peak_nbytes),
        )
        return dataclasses.replace(finished, stats=stats)


_Begun = SegmentReading | Reading | None
"""A document whose segments are to be read, one that is answered from as it is, or is to be looked up."""


class ReadingRun:
    """Reads the documents of one question."""

    def __init__(
        self,
        keeper: ReadingKeeper,
        finder: PassageFinder,
        question: DocumentQuestion,
        model: str,
        taker: NoteTaker,
        cancel: CancelToken,
    ) -> None:
        self._keeper = keeper
        self._finder = finder
        self._question = question
        self._model = model
        self._taker = taker
        self._cancel = cancel
        self._next_number = question.first_number
        self._room_tokens = question.room_tokens

    def readings(
        self, documents: Sequence[DocumentToRead]
    ) -> Generator[SegmentEvent, None, DocumentReadings]:
        """Read what is to be read of each document, after all have been cut into segments."""
        started_s = time.perf_counter()
        begun: list[_Begun] = []
        for each in documents:
            begun.append((yield from self._begun(each)))
        served = [each for each in begun if isinstance(each, Reading)]
        self._next_number = max(self._next_number, *map(self._behind, served), 1)
        clock = SegmentClock(sum(len(each.segments) for each in begun if isinstance(each, SegmentReading)))
        self._taker.budget = self._taker.budget.shared_by(clock.total, self._room_tokens)
        clock.add_read(sum(each.num_segments for each in served if each.way is DocumentWay.SEGMENTS))
        done = yield from self._done(documents, begun, clock)
        seconds = time.perf_counter() - started_s
        return DocumentReadings(tuple(done), self._taker.peak_nbytes, seconds)

    def _done(
        self, documents: Sequence[DocumentToRead], begun: Sequence[_Begun], clock: SegmentClock
    ) -> Generator[SegmentEvent, None, list[Reading]]:
        """Finish the reading of each document; those that are looked up share the room of one."""
        sought = [document for document, each in zip(documents, begun, strict=True) if each is None]
        num_left = sum(isinstance(each, SegmentReading) for each in begun) + bool(sought)
        done: dict[int, Reading] = {}
        for index, (document, each) in enumerate(zip(documents, begun, strict=True)):
            if isinstance(each, Reading):
                done[index] = each
            elif isinstance(each, SegmentReading):
                yield from each.events(clock, reads_on=self._question.reads_on)
                room_tokens = self._room_tokens // num_left
                done[index] = yield from self._noted(document, each, clock, room_tokens)
                self._take_in([done[index]])
                num_left -= 1
            elif index not in done:
                found = yield from self._looked_up(sought, self._room_tokens // num_left)
                places = (at for at, other in enumerate(begun) if other is None)
                done.update(zip(places, found, strict=True))
                self._take_in(found)
                num_left -= 1
        return [done[index] for index in range(len(documents))]

    def _take_in(self, readings: Sequence[Reading]) -> None:
        """Count off what was read, and the numbers in it."""
        self._room_tokens -= sum(self._taker.count(each.text) for each in written_readings(readings))
        self._next_number = max(self._next_number, *map(self._behind, readings))

    def _begun(self, document: DocumentToRead) -> Generator[SegmentEvent, None, _Begun]:
        """Return the reading of a document: done, to be read on, or None where it is to be looked up."""
        if document.is_ready(self._model, reads_on=self._question.reads_on):
            return document.stored
        if document.way is DocumentWay.LOOK_UP:
            return None
        reading = self._going_on(document) or (yield from self._split(document))
        segmented = SegmentedDocument(document.document, self._taker.budget.segment_tokens)
        return SegmentReading(reading, segmented, self._keeper, self._taker)

    def _going_on(self, document: DocumentToRead) -> Reading | None:
        """Return the reading that is gone on with, None where there is nothing that helps.

        Where no segment has been read, they are cut anew: the context may have become shorter.
        """
        stored = document.stored
        if stored is None or (stored.way, stored.model) != (document.way, self._model):
            return None
        if stored.is_done:
            stored = self._keeper.reopen_reading(stored.id)
        return stored if stored.num_read else None

    def _split(self, document: DocumentToRead) -> Generator[SegmentEvent, None, Reading]:
        """Cut a document into segments, which takes seconds for some megabytes."""
        text, kind = document.document.text, document.document.kind
        yield SegmentProgress(0, 0, document.document.title, SegmentStage.SPLITTING)
        places = split_text(text, self._taker.budget.segment_tokens, self._taker.count, kind)
        segments = [ReadSegment(start, stop) for start, stop in places]
        return self._begin(document, segments)

    def _begin(self, document: DocumentToRead, segments: Sequence[ReadSegment]) -> Reading:
        return self._keeper.begin_reading(
            self._question.message_id,
            document.attachment_id,
            document.way,
            self._model,
            segments,
        )

    def _noted(
        self, document: DocumentToRead, reading: SegmentReading, clock: SegmentClock, room_tokens: int
    ) -> Generator[SegmentEvent, None, Reading]:
        """Put the notes on a document together and finish its reading."""
        title = document.document.title
        states = [segment.state for segment in reading.segments]
        coverage = coverage_sentence(
            states.count(SegmentState.READ), states.count(SegmentState.FAILED), len(states)
        )
        notes = reading.notes(self._next_number)
        room = room_tokens - self._taker.count(notes_text(title, coverage, "…", self._next_number, "…"))
        progress = SegmentProgress(clock.number, clock.total, title, SegmentStage.JOINING)
        fitting = reading.fitting(self._question.words, most_fitting_tokens(room_tokens))
        room -= self._taker.count(fitting)
        joined = (yield from joined_notes(notes, room, self._taker, progress)) if notes else ""
        text = notes_text(title, coverage, joined, self._next_number, fitting)
        return self._keeper.finish_reading(reading.reading.id, text)

    def _looked_up(
        self, documents: Sequence[DocumentToRead], room_tokens: int
    ) -> Generator[SegmentEvent, None, list[Reading]]:
        """Look passages of documents up together, and keep those of each as a reading."""
        texts = [each.document for each in documents]
        title = f"{texts[0].title} and {len(texts) - 1:,} more" if len(texts) > 1 else texts[0].title
        yield SegmentProgress(0, 0, title, SegmentStage.LOOKING_UP)
        asked = (self._question.words, self._next_number, room_tokens, self._taker.count, self._cancel)
        segments = self._finder.segments(texts, *asked)
        written = self._finder.texts(texts, segments, *asked)
        begun = [self._begin(*each) for each in zip(documents, segments, strict=True)]
        return [
            self._keeper.finish_reading(reading.id, text)
            for reading, text in zip(begun, written, strict=True)
        ]

    def _behind(self, reading: Reading) -> int:
        """Return the first number behind those of a reading."""
        notes = numbered(reading, self._keeper.reading_segments(reading.id))
        return notes[-1][0] + 1 if notes else 1
