"""One question about documents, without a conversation: what `octavo ask` does."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from app.answer_sources import answer_sources
from app.document_cost import ReadingModel, ReadingRoom, document_costs
from app.document_prompt import (
    Passage,
    chat_message,
    document_passage,
    document_text,
    notes_passage,
    placeholder_passage,
)
from app.document_reader import DocumentReader
from app.document_size import DocumentSize, about_tokens
from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.lookup.question import is_about_whole
from app.model_speeds import ModelSpeeds
from app.nothing_found import nothing_found, unwritten_answer
from app.profiles import DocumentMode
from app.reading.keeping import PassingReadings
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading.records import Reading, ReadSegment, Source, written_readings
from app.reading_run import DocumentReadings
from app.reply_settings import system_message
from app.segments.progress import SegmentEvent
from app.whole_question import whole_question_refusal
from engine.admission import (
    AdmissionError,
    Choice,
    InSegments,
    LookUp,
    ReadWhole,
    num_segments,
    reading_room_tokens,
)
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest, LoadedModel
from engine.errors import Cancelled, ModelError
from engine.events import Finished, GenerationStats, StopReason, Token
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import PromptSize
from engine.sampling import SamplingParams

_QUESTION_ID = 1
"""The question's, in what is read for it."""


@dataclass(frozen=True)
class AskedQuestion:
    """A question, its documents, and how it is to be answered.

    Attributes:
        question: its words; empty for documents alone.
        documents: what it is about.
        way: how all documents are read, None where each is read as is sensible.
        system: the system prompt, an empty one leaves the model's own.
        sampling: how tokens are chosen.
        kv: precision of the KV cache.
        max_context: tokens of prompt and answer together at most.
        anyway: whether the user lets it pass that it does not fit into memory.
    """

    question: str
    documents: Sequence[Document]
    way: DocumentWay | None
    system: str
    sampling: SamplingParams
    kv: KVSpec
    max_context: int | None = None
    anyway: bool = False


class SingleQuestion:
    """Answers one question; belongs to the engine's thread.

    Attributes:
        answer: what was written so far.
        readings: what was read of documents that were not read whole, by their index, once all has been.
    """

    def __init__(self, engine: Engine, asked: AskedQuestion) -> None:
        self.answer = ""
        self.readings: dict[int, Reading] = {}
        self._engine = engine
        self._asked = asked
        self._keeper = PassingReadings()
        self._read = DocumentReadings()

    def segments(self, document: int) -> tuple[ReadSegment, ...]:
        """Return the segments or passages of a document that was not read whole."""
        return self._keeper.reading_segments(self.readings[document].id)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The passages that the answer may rest on; their documents are told by index."""
        texts = {index: document.text for index, document in enumerate(self._asked.documents)}
        return answer_sources(self.answer, list(self.readings.values()), (), texts, self._keeper)

    def events(self, cancel: CancelToken) -> Generator[SegmentEvent, None, None]:
        """Yield progress, the tokens of the answer and its figures; a stop ends it with these, too.

        Raises:
            AdmissionError: it does not fit, or is about all of a document that would be looked up.
            ModelError: no model is loaded.
        """
        try:
            ways = self._ways(cancel)
            yield from self._read_documents(ways, cancel)
        except Cancelled:
            self._read = DocumentReadings(self._keeper.readings)
            yield self._told(Finished(GenerationStats.of_nothing(self._asked.kv, StopReason.STOPPED)))
            return
        request = self._request(ways)
        titles = {index: document.title for index, document in enumerate(self._asked.documents)}
        nothing = nothing_found(list(self.readings.values()), request.messages, titles)
        if nothing is not None:
            self._require_words_to_look_up(ways, cancel)
        events = (
            self._engine.generate(request, cancel)
            if nothing is None
            else unwritten_answer(nothing, self._asked.kv)
        )
        for event in events:
            yield self._told(event)

    def _told(self, event: SegmentEvent) -> SegmentEvent:
        """Take in what is written, and put what was read before into the figures."""
        if isinstance(event, Token):
            self.answer += event.text
        return self._read.in_figures(event) if isinstance(event, Finished) else event

    @property
    def _loaded(self) -> LoadedModel:
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        return self._engine.loaded

    def _ways(self, cancel: CancelToken) -> list[DocumentWay]:
        """Return how each document is read; refuse what cannot be looked up."""
        asked = self._asked
        if asked.way is not None or not asked.documents:
            return [asked.way or DocumentWay.WHOLE for _ in asked.documents]
        room = self._room(cancel)
        sizes = [self._size(document) for document in asked.documents]
        fit = sum(each.num_tokens for each in sizes) <= room.whole_tokens
        speeds = ModelSpeeds(self._engine)
        speed = speeds.learn() if fit else speeds.measure(asked.kv, cancel)
        model = ReadingModel(self._loaded, asked.kv, speed)
        costs = document_costs(sizes, [None] * len(sizes), room, model, DocumentMode.AUTO)
        ways = [cost.sensible for cost in costs]
        looked_up = [index for index, way in enumerate(ways) if way is DocumentWay.LOOK_UP]
        if looked_up and is_about_whole(asked.question):
            choices = self._other_ways([sizes[index] for index in looked_up], room)
            raise self._whole_question_refusal(looked_up, (*choices, LookUp()))
        return ways

    def _room(self, cancel: CancelToken) -> ReadingRoom:
        size = self._measure([DocumentWay.LOOK_UP] * len(self._asked.documents))
        question_tokens = self._loaded.counter.count(self._asked.question, cancel)
        return ReadingRoom(min(size.limit_tokens, size.fitting_tokens), size.num_tokens, question_tokens)

    def _size(self, document: Document) -> DocumentSize:
        text = document_text(document.title, document.text)
        return DocumentSize(document.num_pages, 0, about_tokens(text, self._loaded.counter.count))

    def _require_words_to_look_up(self, ways: Sequence[DocumentWay], cancel: CancelToken) -> None:
        """Refuse a question about the whole of documents that were looked up as the user wants, in vain."""
        looked_up = [index for index, way in enumerate(ways) if way is DocumentWay.LOOK_UP]
        if looked_up and is_about_whole(self._asked.question):
            sizes = [self._size(self._asked.documents[index]) for index in looked_up]
            raise self._whole_question_refusal(looked_up, self._other_ways(sizes, self._room(cancel)))

    def _whole_question_refusal(
        self, looked_up: Sequence[int], choices: tuple[Choice, ...]
    ) -> AdmissionError:
        titles = [self._asked.documents[index].title for index in looked_up]
        return whole_question_refusal(titles, self._asked.question, choices)

    def _other_ways(self, sizes: Sequence[DocumentSize], room: ReadingRoom) -> tuple[Choice, ...]:
        """Return how documents are read that cannot be looked up."""
        num_tokens = sum(each.num_tokens for each in sizes)
        whole = (ReadWhole(num_tokens),) if num_tokens <= room.whole_tokens else ()
        count = num_segments(num_tokens, room.question_tokens, room.limit_tokens, len(sizes))
        return (*whole, *(() if count is None else (InSegments(count, num_tokens),)))

    def _measure(self, ways: Sequence[DocumentWay]) -> PromptSize:
        return self._engine.measure(self._request(ways))

    def _read_documents(
        self, ways: Sequence[DocumentWay], cancel: CancelToken
    ) -> Generator[SegmentEvent, None, None]:
        asked = self._asked
        documents = [
            DocumentToRead(index, document, way)
            for index, (document, way) in enumerate(zip(asked.documents, ways, strict=True))
            if way is not DocumentWay.WHOLE
        ]
        if not documents:
            return
        size = self._measure(ways)
        limit = min(size.limit_tokens, size.fitting_tokens)
        question = DocumentQuestion(
            message_id=_QUESTION_ID,
            words=asked.question,
            kv=asked.kv,
            room_tokens=min(reading_room_tokens(limit), limit - size.num_tokens - MIN_ANSWER_TOKENS),
            max_context=asked.max_context,
            repetition_penalty=asked.sampling.repetition_penalty,
            anyway=asked.anyway,
        )
        reader = DocumentReader(self._engine, self._keeper)
        self._read = yield from reader.read(question, documents, cancel)
        self.readings = {each.attachment_id: each for each in self._read.readings}

    def _request(self, ways: Sequence[DocumentWay]) -> GenerationRequest:
        asked = self._asked
        passages = [
            self._passage(index, document, way)
            for index, (document, way) in enumerate(zip(asked.documents, ways, strict=True))
        ]
        notes = [
            notes_passage(asked.documents[reading.attachment_id].title, reading.text, "")
            for reading in written_readings(list(self.readings.values()))
        ]
        message = chat_message("user", asked.question, [*passages, *notes])
        messages: tuple[ChatMessage, ...] = (*system_message(asked.system), message)
        return GenerationRequest(messages, asked.sampling, asked.kv, asked.max_context, anyway=asked.anyway)

    def _passage(self, index: int, document: Document, way: DocumentWay) -> Passage:
        if way is DocumentWay.WHOLE:
            return document_passage(document)
        return placeholder_passage(document.title, document.num_pages, "")
