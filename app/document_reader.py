"""What is read of documents for one question, beside those that are read whole: in segments, or looked up.

The chat and `octavo ask` both use it; they differ in where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from app.document_prompt import chat_message
from app.documents.ways import DocumentWay
from app.reading.keeping import ReadingKeeper
from app.reading.passages import PassageFinder
from app.reading.question import DocumentQuestion, DocumentToRead
from app.reading_run import DocumentReadings, ReadingRun
from app.segments.budget import SegmentBudget
from app.segments.notes import SEGMENT_CONVERSATION, NoteTaker, note_request
from app.segments.progress import SegmentEvent
from app.segments.prompts import (
    join_prompt,
    question_or_default,
    segment_passage,
    segment_prompt,
)
from engine.admission import (
    AdmissionError,
    LongerContext,
    least_room_tokens,
    limit_with_reading_room,
    longer_context,
)
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import ModelError
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import PromptSize

_PLACE = "p. 9,999, " + "m" * 40
"""A place as long as they are."""


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
        in_segments = [each for each in unread if each.way is DocumentWay.SEGMENTS]
        wanted = least_room_tokens(len(in_segments), len(unread) - len(in_segments))
        missing = wanted - question.room_tokens
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
        run = ReadingRun(self._keeper, self._finder, question, self._model, taker, cancel)
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
