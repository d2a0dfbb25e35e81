"""When a trim of a conversation is due, and what it is: the policy with the numbers of the loaded model."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass

from app.document_prompt import placed_documents
from app.ledger.context import ConversationContext
from app.ledger.run import Run, RunText, run_text
from app.ledger.summary_request import SummaryRequest
from app.ledger.trimming import Order, TokenMeasure, TrimPlan, plan_trim, release_order
from app.profiles import DocumentMode, Overflow
from app.reply_settings import ReplySettings, system_message
from app.segments.plan import least_notes_tokens, with_room_for_notes, without_document_texts
from engine.engine import Engine, LoadedModel
from engine.errors import ModelError
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import PromptSize

PREPARE_SHARE = 0.8
"""A summary is prepared when prompt and answer room come to this share of those that make a trim due."""
_MOST_KEPT_OF_DUE = 0.9
"""What a trim leaves is at most so much of what makes the next one due."""
_MARGIN = 10
"""What is prepared may leave this fraction of the context more than the ratio says."""


@dataclass(frozen=True)
class ContextRoom:
    """Tokens of a prompt, and at how many what is due.

    Attributes:
        num_tokens: of the prompt as it is.
        limit_tokens: the context.
        fitting_tokens: what model and memory hold, whatever limit was set.
        answer_tokens: room for the answer, up to a quarter of the context.
        due_tokens: a longer prompt is to be trimmed.
        kept_tokens: what is left then at most.
        prepare_tokens: for a longer prompt a summary is prepared.
    """

    num_tokens: int
    limit_tokens: int
    fitting_tokens: int
    answer_tokens: int
    due_tokens: int
    kept_tokens: int
    prepare_tokens: int

    @property
    def is_due(self) -> bool:
        """Whether it is to be trimmed."""
        return self.num_tokens > self.due_tokens

    @property
    def margin_tokens(self) -> int:
        """What is prepared may leave so many tokens more than `kept_tokens`."""
        return min(self.limit_tokens // _MARGIN, (self.due_tokens - self.kept_tokens) // 2)

    @classmethod
    def of(
        cls, size: PromptSize, positions: int, settings: ReplySettings, notes_tokens: int = 0
    ) -> ContextRoom:
        """Return the room for a prompt with a model of so many positions.

        There should be room for the answer. Of memory, which may be short for a moment only, the shortest
        answer has to do. `notes_tokens` are kept for notes on documents that are read in parts.
        """
        allowed = positions
        if not settings.anyway and settings.max_context is not None:
            allowed = min(positions, settings.max_context)
        answer = max(MIN_ANSWER_TOKENS, min(settings.sampling.max_tokens, allowed // 4))
        limit, due = allowed, int(settings.trim_at * allowed) - answer
        if not settings.anyway and size.fitting_tokens < allowed:
            limit, due = size.fitting_tokens, min(due, size.fitting_tokens - MIN_ANSWER_TOKENS)
        due -= notes_tokens
        kept = min(int(settings.keep_ratio * limit), int(_MOST_KEPT_OF_DUE * due))
        prepare = int(PREPARE_SHARE * (due + answer)) - answer
        return cls(size.num_tokens, limit, size.fitting_tokens, answer, due, kept, prepare)


class TrimPlanner:
    """Plans trims of one conversation with the loaded model; belongs to the engine's thread.

    Attributes:
        loaded: the model.
        count: returns the tokens of a text alone.
        conversation_id: which conversation.
        settings: how it is answered.
    """

    def __init__(self, engine: Engine, conversation_id: int, settings: ReplySettings) -> None:
        """Make one for the model that is loaded.

        Raises:
            ModelError: there is none.
        """
        if engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        self.loaded: LoadedModel = engine.loaded
        self.conversation_id = conversation_id
        self.settings = settings
        self._engine = engine
        self.count: Callable[[str], int] = functools.cache(self.loaded.counter.count)
        self._has_parts = settings.document_mode is DocumentMode.SEGMENTS

    @property
    def summarizes(self) -> bool:
        """Whether summaries stand in the place of what is released."""
        return self.settings.overflow is Overflow.SUMMARIZE

    @property
    def may_trim(self) -> bool:
        """Whether turns leave the context without asking."""
        return self.settings.overflow in (Overflow.SUMMARIZE, Overflow.DROP)

    def room(self, context: ConversationContext) -> ContextRoom:
        """Return the room that there is for a context."""
        size, positions = self._size(context), self.loaded.info.context_tokens
        return ContextRoom.of(size, positions, self.settings, self._notes_tokens(context))

    def _notes_tokens(self, context: ConversationContext) -> int:
        """Return the room for the notes on documents where these do not fit whole."""
        num_documents = len(placed_documents(context.messages)) if self._has_parts else 0
        if not num_documents:
            return 0
        whole = self._engine.measure(self.settings.request(context, self.conversation_id))
        is_whole = whole.num_tokens + MIN_ANSWER_TOKENS <= min(whole.limit_tokens, whole.fitting_tokens)
        return 0 if is_whole else num_documents * least_notes_tokens(whole.limit_tokens)

    def plan(
        self, context: ConversationContext, room: ContextRoom, *, summarizes: bool, growth_tokens: int = 0
    ) -> TrimPlan | None:
        """Return what brings a context down to what is kept; None where nothing may be released.

        Args:
            context: what the model reads.
            room: the room for it.
            summarizes: whether summaries stand in the place of what is released.
            growth_tokens: what it will be longer by when the trim is due.
        """
        most = room.kept_tokens - growth_tokens
        measure = TokenMeasure(lambda changed: self._size(changed).num_tokens, self._run_tokens, self.count)
        return plan_trim(
            context,
            self._order(context),
            measure,
            most,
            summarizes=summarizes,
            enough_tokens=most + room.margin_tokens,
            limit_tokens=room.limit_tokens,
        )

    def shorter(self, context: ConversationContext) -> TrimPlan | None:
        """Return what leaves the context while memory is short, by its characters; None where nothing may."""
        if not self.may_trim:
            return None

        def characters(changed: ConversationContext) -> int:
            return sum(len(message.content) for message in changed.messages)

        measure = TokenMeasure(characters, lambda changed, run: 0, len)
        most = int(self.settings.keep_ratio * characters(context))
        return plan_trim(context, self._order(context), measure, most, summarizes=False)

    def summary_request(self, text: RunText, room_tokens: int | None) -> SummaryRequest:
        """Return what a summary is asked with; `room_tokens` as in `SummaryRequest`."""
        settings, system = self.settings, system_message(self.settings.system_prompt)
        if text.num_turns:
            text = self._as_read(text)
        return SummaryRequest(
            messages=(*system, *text.messages),
            first=len(system) + text.first,
            covers=text.covers,
            num_turns=text.num_turns,
            source_tokens=self._source_tokens(text),
            kv=settings.kv,
            conversation_id=self.conversation_id,
            repetition_penalty=settings.sampling.repetition_penalty,
            anyway=settings.anyway,
            room_tokens=room_tokens,
        )

    def _size(self, context: ConversationContext) -> PromptSize:
        """Measure a prompt, with no more than a frame for documents that are read in parts where need be."""
        request = self.settings.request(context, self.conversation_id)
        documents = placed_documents(request.messages) if self._has_parts else ()
        return self._engine.measure(with_room_for_notes(request, documents) if documents else request)

    def _order(self, context: ConversationContext) -> Order:
        """Return the order of release; documents that are read in parts take little, and go last."""
        usage = self._engine.context_usage()
        last = {
            index
            for index, turn in enumerate(context.turns)
            if self._has_parts and any(message.attachments for message in turn.messages)
        }
        return release_order(context, () if usage is None else usage.spans, last)

    def _as_read(self, text: RunText) -> RunText:
        if not self._has_parts:
            return text
        return dataclasses.replace(text, messages=without_document_texts(text.messages))

    def _run_tokens(self, context: ConversationContext, run: Run) -> int:
        return self._source_tokens(self._as_read(run_text(context, run)))

    def _source_tokens(self, text: RunText) -> int:
        """Return the tokens of a run; of a document without the others before it in its message."""
        if text.num_turns:
            return sum(self.count(message.content) for message in text.messages[text.first :])
        document = text.messages[-1].documents[-1]
        return self.count(text.messages[-1].content[document.start : document.stop])
