"""What is read of documents for one question, beside those that are read whole: in segments, or looked up.

The chat and `octavo ask` both use it; they differ in where it is kept.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from app.document_prompt import chat_message
from app.documents.ways import DocumentWay
from app.reading.coverage import coverage_sentence
from app.reading.keeping import ReadingKeeper
from app.reading.passages import PassageFinder
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading.records import Reading, ReadSegment, SegmentState
from app.segments.budget import SegmentBudget
from app.segments.joining import joined_notes
from app.segments.notes import SEGMENT_CONVERSATION, NoteTaker, note_request
from app.segments.numbering import numbered
from app.segments.progress import SegmentEvent, SegmentProgress, SegmentStage
from app.segments.prompts import (
    join_prompt,
    notes_text,
    question_or_default,
    segment_passage,
    segment_prompt,
)
from app.segments.reading import SegmentClock, SegmentedDocument, SegmentReading
from app.segments.splitting import split_text
from engine.admission import AdmissionError, longer_context
from engine.cancel import CancelToken
from engine.engine import Engine, LoadedModel
from engine.errors import ModelError
from engine.events import Finished
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import PromptSize

LEAST_ROOM_TOKENS = 96
"""What a document is given at least for its notes or passages, the words around them included."""
_PLACE = "p. 9,999, " + "m" * 40
"""A place as long as they are."""


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


class DocumentReader:
    """Reads documents for questions; belongs to the engine's thread."""

    def __init__(self, engine: Engine, keeper: ReadingKeeper) -> None:
        self._engine = engine
        self._keeper = keeper
        self._finder = PassageFinder()

    def admit(self, question: DocumentQuestion, documents: Sequence[DocumentToRead]) -> None:
        """Refuse what `read` has no room for, before anything is touched.

        Raises:
            AdmissionError: there is no room for segments, or for what is to be read of a document.
            ModelError: no model is loaded.
        """
        if not documents:
            return
        missing = LEAST_ROOM_TOKENS * len(documents) - question.room_tokens
        in_segments = [each for each in documents if each.way is DocumentWay.SEGMENTS]
        size, budget = self._budget(question, in_segments)
        if in_segments:
            missing = max(missing, budget.missing_tokens)
        if missing > 0:
            limit = min(size.limit_tokens, size.fitting_tokens)
            longer = longer_context(limit + missing, size.fitting_tokens)
            raise AdmissionError(
                "The context has too little room to read a document in segments or to look it up beside this "
                "conversation. Allow a longer context, or leave old turns out.",
                needed_nbytes=0,
                available_nbytes=0,
                choices=() if longer is None else (longer,),
                can_override=False,
            )

    def read(
        self,
        question: DocumentQuestion,
        documents: Sequence[DocumentToRead],
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Generator[SegmentEvent, None, DocumentReadings]:
        """Yield how far it is; return what was read of each document.

        What is kept already is not read again. A segment that cannot be read is tried once more and then
        kept as FAILED.

        Raises:
            Cancelled: it was stopped; what was read until then is kept.
            OctavoError: no segment of a document could be read; why not.
        """
        in_segments = [each for each in documents if each.way is DocumentWay.SEGMENTS]
        _, budget = self._budget(question, in_segments)
        taker = NoteTaker(self._engine, question, budget, cancel, wanted_kv)
        run = _Run(self._engine, self._keeper, self._finder, question, taker, cancel)
        try:
            return (yield from run.readings(documents))
        finally:
            self._engine.forget(SEGMENT_CONVERSATION)

    def _budget(
        self, question: DocumentQuestion, documents: Sequence[DocumentToRead]
    ) -> tuple[PromptSize, SegmentBudget]:
        """Return the size of what stands around a segment, the longest title counted, and what is left."""
        title = max((each.document.title for each in documents), key=len, default="")
        words = question_or_default(question.words)
        asking = chat_message("user", segment_prompt(words), [segment_passage(title, _PLACE, "")])
        joining = ChatMessage("user", join_prompt(title, "", words))
        frame, join_frame = (
            self._engine.measure(note_request(question, each, 1)) for each in (asking, joining)
        )
        limit = min(frame.limit_tokens, frame.fitting_tokens)
        return frame, SegmentBudget.of(limit, frame.num_tokens, join_frame.num_tokens)


class _Run:
    """Reads the documents of one question."""

    def __init__(
        self,
        engine: Engine,
        keeper: ReadingKeeper,
        finder: PassageFinder,
        question: DocumentQuestion,
        taker: NoteTaker,
        cancel: CancelToken,
    ) -> None:
        self._engine = engine
        self._keeper = keeper
        self._finder = finder
        self._question = question
        self._taker = taker
        self._cancel = cancel
        self._next_number = question.first_number
        self._room_tokens = question.room_tokens

    @property
    def _loaded(self) -> LoadedModel:
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._engine.loaded

    def readings(
        self, documents: Sequence[DocumentToRead]
    ) -> Generator[SegmentEvent, None, DocumentReadings]:
        started_s = time.perf_counter()
        self._engine.publish_reading()
        begun: list[SegmentReading | Reading | None] = []
        for each in documents:
            begun.append((yield from self._begun(each)))
        clock = SegmentClock(sum(len(each.segments) for each in begun if isinstance(each, SegmentReading)))
        readings = []
        for number, (document, reading) in enumerate(zip(documents, begun, strict=True)):
            num_left = sum(not isinstance(each, Reading) for each in begun[number:])
            match reading:
                case SegmentReading():
                    yield from reading.events(clock, reads_on=self._question.reads_on)
                    done = yield from self._noted(document, reading, clock, self._room_tokens // num_left)
                case Reading():
                    done = reading
                case None:
                    done = yield from self._looked_up(document, self._room_tokens // num_left)
            readings.append(done)
            if reading is not done:
                self._room_tokens -= self._taker.count(done.text)
            self._next_number = max(self._next_number, self._behind(done))
        seconds = time.perf_counter() - started_s
        return DocumentReadings(tuple(readings), self._taker.peak_nbytes, seconds)

    def _begun(
        self, document: DocumentToRead
    ) -> Generator[SegmentEvent, None, SegmentReading | Reading | None]:
        """Return the reading of a document: done, to be read on, or None where it is to be looked up."""
        stored = self._stored(document)
        if stored is not None and stored.is_done:
            is_complete = document.way is DocumentWay.LOOK_UP or stored.num_read == stored.num_segments
            if is_complete or not self._question.reads_on:
                return stored
            stored = self._keeper.reopen_reading(stored.id)
        if document.way is DocumentWay.LOOK_UP:
            return None
        return self._segment_reading(document, stored or (yield from self._split(document)))

    def _stored(self, document: DocumentToRead) -> Reading | None:
        """Return what is kept of reading a document this way; notes only of the model that is loaded."""
        stored = document.stored
        if stored is None or stored.way is not document.way:
            return None
        is_same = stored.way is DocumentWay.LOOK_UP or stored.model == self._loaded.info.name
        return stored if is_same else None

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
            self._loaded.info.name,
            segments,
        )

    def _segment_reading(self, document: DocumentToRead, reading: Reading) -> SegmentReading:
        segmented = SegmentedDocument(document.document, self._taker.budget.segment_tokens)
        return SegmentReading(reading, segmented, self._keeper, self._taker)

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
        room = room_tokens - self._taker.count(notes_text(title, coverage, "", self._next_number))
        progress = SegmentProgress(clock.number, clock.total, title, SegmentStage.JOINING)
        joined = (yield from joined_notes(notes, room, self._taker, progress)) if notes else ""
        text = notes_text(title, coverage, joined, self._next_number)
        return self._keeper.finish_reading(reading.reading.id, text)

    def _looked_up(
        self, document: DocumentToRead, room_tokens: int
    ) -> Generator[SegmentEvent, None, Reading]:
        """Look passages of a document up, and keep them as a reading."""
        yield SegmentProgress(0, 0, document.document.title, SegmentStage.LOOKING_UP)
        words, count = self._question.words, self._taker.count
        segments = self._finder.segments(
            document.document, words, self._next_number, room_tokens, count, self._cancel
        )
        text = self._finder.text(document.document, segments, self._next_number, self._cancel)
        reading = self._begin(document, segments)
        return self._keeper.finish_reading(reading.id, text)

    def _behind(self, reading: Reading) -> int:
        """Return the first number behind those of a reading."""
        notes = numbered(reading, self._keeper.reading_segments(reading.id))
        return notes[-1][0] + 1 if notes else 1
