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
from app.segments.budget import SegmentBudget, most_fitting_tokens
from app.segments.joining import BETWEEN, joined_notes
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
from app.sources.evidence import fitting_sentence
from engine.admission import (
    LEAST_ROOM_TOKENS,
    AdmissionError,
    LongerContext,
    limit_with_reading_room,
    longer_context,
)
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import ModelError
from engine.events import Finished
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import PromptSize

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
        unread = [each for each in documents if not each.is_ready(self._model, reads_on=question.reads_on)]
        if not unread:
            return
        wanted = LEAST_ROOM_TOKENS * len(unread)
        missing = wanted - question.room_tokens
        in_segments = [each for each in unread if each.way is DocumentWay.SEGMENTS]
        size, budget = self._budget(question, in_segments)
        if in_segments:
            missing = max(missing, budget.missing_tokens)
        if missing > 0:
            limit = min(size.limit_tokens, size.fitting_tokens)
            room_limit = limit_with_reading_room(wanted)
            needed = None if room_limit is None else max(limit + missing, room_limit)
            longer = None if needed is None else longer_context(needed, size.fitting_tokens)
            raise AdmissionError(
                _too_little_room(len(unread), longer),
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
            AdmissionError: there is no room for it, see `admit`.
            OctavoError: no segment of a document could be read; why not.
        """
        self.admit(question, documents)
        in_segments = [each for each in documents if each.way is DocumentWay.SEGMENTS]
        _, budget = self._budget(question, in_segments)
        taker = NoteTaker(self._engine, question, budget, cancel, wanted_kv)
        run = _Run(self._keeper, self._finder, question, self._model, taker, cancel)
        self._engine.publish_reading()
        try:
            return (yield from run.readings(documents))
        finally:
            self._engine.forget(SEGMENT_CONVERSATION)

    @property
    def _model(self) -> str:
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._engine.loaded.info.name

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


def _too_little_room(num_documents: int, longer: LongerContext | None) -> str:
    """Return why documents cannot be read beside a conversation, and what helps."""
    documents, it = "a document", "it"
    if num_documents > 1:
        documents, it = f"{num_documents:,} documents", "them"
    helps = [] if longer is None else ["Allow a longer context"]
    helps += ["Remove some of them"] if num_documents > 1 else []
    helps += ["Leave old turns out"]
    return (
        f"The context has too little room to read {documents} in segments or to look {it} up beside this "
        f"conversation. {', or '.join(helps).capitalize()}."
    )


_Begun = SegmentReading | Reading | None
"""A document whose segments are to be read, one that is answered from as it is, or is to be looked up."""


class _Run:
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
        num_left = len(begun) - len(served)
        readings = []
        for document, reading in zip(documents, begun, strict=True):
            if isinstance(reading, Reading):
                readings.append(reading)
                continue
            done = yield from self._done(document, reading, clock, self._room_tokens // num_left)
            readings.append(done)
            num_left -= 1
            self._room_tokens -= self._taker.count(done.text)
            self._next_number = max(self._next_number, self._behind(done))
        seconds = time.perf_counter() - started_s
        return DocumentReadings(tuple(readings), self._taker.peak_nbytes, seconds)

    def _done(
        self,
        document: DocumentToRead,
        reading: SegmentReading | None,
        clock: SegmentClock,
        room_tokens: int,
    ) -> Generator[SegmentEvent, None, Reading]:
        """Read a document in segments, or look it up, and finish its reading."""
        if reading is None:
            return (yield from self._looked_up(document, room_tokens))
        yield from reading.events(clock, reads_on=self._question.reads_on)
        return (yield from self._noted(document, reading, clock, room_tokens))

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
        noted = BETWEEN.join(note.text for note in notes)
        fitting = fitting_sentence(
            self._question.words, noted, most_fitting_tokens(room_tokens), self._taker.count
        )
        room -= self._taker.count(fitting)
        joined = (yield from joined_notes(notes, room, self._taker, progress)) if notes else ""
        text = notes_text(title, coverage, joined, self._next_number, fitting)
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
        text = self._finder.text(
            document.document, segments, words, self._next_number, room_tokens, count, self._cancel
        )
        reading = self._begin(document, segments)
        return self._keeper.finish_reading(reading.id, text)

    def _behind(self, reading: Reading) -> int:
        """Return the first number behind those of a reading."""
        notes = numbered(reading, self._keeper.reading_segments(reading.id))
        return notes[-1][0] + 1 if notes else 1
