"""When a trim of a conversation is due, and what it is: the policy with the numbers of the loaded model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from app.ledger.context import ConversationContext
from app.ledger.run import Run, RunText, run_text
from app.ledger.summary_request import SummaryRequest
from app.ledger.trimming import Order, TokenMeasure, TrimPlan, plan_trim, release_order
from app.profiles import Overflow
from app.reply_settings import ReplySettings, system_message
from app.store.records import Attachment
from engine.admission import reading_room_tokens
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
        cls, size: PromptSize, positions: int, settings: ReplySettings, reading_tokens: int = 0
    ) -> ContextRoom:
        """Return the room for a prompt with a model of so many positions.

        There should be room for the answer. Of memory, which may be short for a moment only, the shortest
        answer has to do. `reading_tokens` are kept for what will be read of documents, in segments or by
        looking up.
        """
        allowed = positions
        if not settings.anyway and settings.max_context is not None:
            allowed = min(positions, settings.max_context)
        answer = max(MIN_ANSWER_TOKENS, min(settings.sampling.max_tokens, allowed // 4))
        limit, due = allowed, int(settings.trim_at * allowed) - answer
        if not settings.anyway and size.fitting_tokens < allowed:
            limit, due = size.fitting_tokens, min(due, size.fitting_tokens - MIN_ANSWER_TOKENS)
        due -= reading_tokens
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
        return ContextRoom.of(size, positions, self.settings, self._reading_tokens(context, size))

    def reading_room(self, context: ConversationContext) -> int:
        """Return the tokens that what is still to be read of documents for the question may have; 0 for none.

        That is as much as when all of it is read at once.
        """
        size, question = self._size(context), context.ways.question_id
        limit = min(size.limit_tokens, size.fitting_tokens)
        free = limit - size.num_tokens - MIN_ANSWER_TOKENS
        most = reading_room_tokens(limit)
        for each in () if question is None else context.ways.written_readings(question):
            if each.serves(each.way, self.loaded.info.name, reads_on=self.settings.reads_on):
                most -= self.count(each.text)
            else:
                free += self.count(each.text)
        return max(0, min(most, free))

    def _reading_tokens(self, context: ConversationContext, size: PromptSize) -> int:
        """Return the room for what is still to be read of documents."""
        return reading_room_tokens(size.limit_tokens) if unread_documents(context) else 0

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
        return self._engine.measure(self.settings.request(context, self.conversation_id))

    def _order(self, context: ConversationContext) -> Order:
        usage = self._engine.context_usage()
        return release_order(context, () if usage is None else usage.spans)

    def _run_tokens(self, context: ConversationContext, run: Run) -> int:
        return self._source_tokens(run_text(context, run))

    def _source_tokens(self, text: RunText) -> int:
        """Return the tokens of a run; of a document without the others before it in its message."""
        if text.num_turns:
            return sum(self.count(message.content) for message in text.messages[text.first :])
        document = text.messages[-1].documents[-1]
        return self.count(text.messages[-1].content[document.start : document.stop])


def unread_documents(context: ConversationContext) -> tuple[Attachment, ...]:
    """Return the documents that are still to be read in segments, or looked up, for the question."""
    question = context.ways.question_id
    if question is None:
        return ()
    read = {each.attachment_id for each in context.ways.readings(question)}
    return tuple(document for document, _ in context.documents_to_read() if document.id not in read)
