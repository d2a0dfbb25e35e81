"""Whether what is written may be sent now, why not, and what would fit instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from app.ledger.asking import document_choices, due_refusal, turn_choices
from app.ledger.context import ConversationContext
from app.ledger.records import attachment_key
from app.profiles import Overflow
from app.reply_settings import ReplySettings
from engine.admission import (
    LEAST_SEGMENT_TOKENS,
    AdmissionError,
    Choice,
    longer_context,
    other_ways,
    reading_room_tokens,
    too_large,
)
from engine.budget import kv_nbytes
from engine.engine import LoadedModel
from engine.headroom import more_memory
from engine.planned_room import limit_of_plan, more_room, room_words
from engine.reply_admission import MIN_ANSWER_TOKENS
from ui.attachments import DraftAttachments
from ui.context_budget import ContextBudget, ContextEstimate
from ui.context_counts import Asked
from ui.context_use import ContextUse
from ui.conversation_session import ConversationSession
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.next_reply import AS_SET, Once, reply_settings
from ui.open_usage import OpenUsage
from ui.profiles.current import CurrentProfile
from ui.reply_stream import ReplyStream
from ui.stored_settings import StoredSettings
from ui.surplus import surplus_sentence


class SendCheck:
    """Looks at the engine, the open conversation and the context; says in a sentence what is in the way."""

    def __init__(
        self,
        engine: EngineThread,
        settings: StoredSettings,
        profile: CurrentProfile,
        session: ConversationSession,
        stream: ReplyStream,
        attachments: DraftAttachments,
        budget: ContextBudget,
        usage: OpenUsage,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._profile = profile
        self._session = session
        self._stream = stream
        self._attachments = attachments
        self._budget = budget
        self._usage = usage

    def engine_refusal(self) -> str:
        """Return why nothing can be answered now; empty when it can."""
        if self._stream.conversation_id is not None:
            return "A reply is being written. Stop it, or wait until it is finished."
        if self._engine.state is EngineState.LOADING:
            return "The model is still loading."
        if self._engine.loaded is None:
            return "Choose a model first."
        return ""

    def refusal(self, text: str) -> str:
        """Return why `text` cannot be sent now, its length aside; empty when it can."""
        if not text and not self._attachments.attachments:
            return "Write something first."
        if self._attachments.is_reading:
            return "A document is still being read."
        if failed := self._attachments.failed_title:
            return f"{failed} could not be attached. Remove it first."
        return self.engine_refusal()

    def use(self, text: str) -> ContextUse:
        """Return what `text` would take of the context, with its documents and the conversation before it."""
        return self._use(text, self._reply_settings())

    def surplus(self, text: str, use: ContextUse) -> str:
        """Return by how much `text` is too long and what helps; empty when it fits.

        While a reply is being written and nothing else is, its growing is no matter of the next message.
        """
        admission = self.admission(text) if use.surplus_tokens else None
        is_next = bool(text or self._attachments.attachments)
        return str(admission) if admission is not None and (is_next or not self._session.is_streaming) else ""

    def admission(self, text: str, once: Once = AS_SET) -> AdmissionError | None:
        """Return what would be refused for its length, with what would fit; None where it fits.

        A profile that asks before turns leave the context refuses what fits still, too.
        """
        settings, loaded = self._reply_settings(once), self._engine.loaded
        use, estimate = self._use(text, settings), self._estimate(text, settings)
        if loaded is None or estimate is None or use.used_tokens is None:
            return None
        if use.surplus_tokens:
            return self._surplus_refusal(text, use, estimate)
        asks = settings.overflow is Overflow.ASK and estimate.is_due
        return due_refusal(estimate, estimate.context) if asks else None

    def _surplus_refusal(self, text: str, use: ContextUse, estimate: ContextEstimate) -> AdmissionError:
        settings, loaded = estimate.settings, estimate.loaded
        needed = (use.used_tokens or 0) + MIN_ANSWER_TOKENS
        plan = loaded.plan_at(settings.kv)
        fits = needed <= plan.fitting_tokens  # a longer context is all that it takes
        is_memory = not fits and needed <= min(loaded.info.context_tokens, settings.max_context or needed)
        limit = limit_of_plan(loaded, settings.kv) if is_memory else None
        choices = tuple(self._choices(use, estimate))
        return AdmissionError(
            surplus_sentence(
                use,
                bool(self._attachments.attachments),
                choices,
                room_words(loaded, settings.kv, needed) if is_memory else "",
                more_memory(limit) if is_memory else "",
            ),
            needed_nbytes=kv_nbytes(loaded.info, loaded.backend, settings.kv, needed),
            available_nbytes=plan.kv_budget_nbytes,
            choices=choices,
            can_override=not fits and needed <= loaded.info.context_tokens,
            limit_nbytes=limit,
        )

    def _choices(self, use: ContextUse, estimate: ContextEstimate) -> Iterator[Choice]:
        """Yield what would fit, the mildest first."""
        used = use.used_tokens or 0
        yield from self._more_room(used + MIN_ANSWER_TOKENS, estimate.settings, estimate.loaded)
        documents, tokens = estimate.whole_documents, estimate.whole_tokens or 0
        own = (use.text_tokens or 0) + (use.template_tokens or 0)
        ways = []
        if use.surplus_tokens + LEAST_SEGMENT_TOKENS <= tokens:
            limit = use.limit_tokens or 0
            sizes = [(attachment_key(each.id), estimate.document_tokens(each)) for each in documents]
            room = limit - reading_room_tokens(limit) - MIN_ANSWER_TOKENS - (used - tokens)
            taken = too_large([size for _, size in sizes], room)
            ways = list(other_ways([sizes[index] for index in taken], own, limit))
        yield from ways or document_choices(estimate, estimate.context)
        yield from turn_choices(estimate, estimate.context)

    def _more_room(self, needed_tokens: int, settings: ReplySettings, loaded: LoadedModel) -> list[Choice]:
        """Return how the context holds so many tokens: with a longer limit, else with more room in memory."""
        longer = longer_context(needed_tokens, loaded.plan_at(settings.kv).fitting_tokens)
        if longer is not None:
            return [longer]
        if needed_tokens > (settings.max_context or needed_tokens):
            return []
        return list(more_room(loaded, settings.kv, needed_tokens))

    def _use(self, text: str, settings: ReplySettings) -> ContextUse:
        return self._budget.use(self._asked(text), settings, self._engine.loaded, self._usage.value)

    def _estimate(self, text: str, settings: ReplySettings) -> ContextEstimate | None:
        return self._budget.estimate(self._asked(text), settings, self._engine.loaded, self._usage.value)

    def _asked(self, text: str) -> Asked:
        return Asked(self._context, text, tuple(self._attachments.attachments))

    def _reply_settings(self, once: Once = AS_SET) -> ReplySettings:
        return reply_settings(self._settings.value, self._profile.value, once)

    @property
    def _context(self) -> ConversationContext:
        """What is read of the open path, with what is written of a reply so far."""
        context, writing = self._session.context, self._stream.message
        messages = self._session.messages
        if writing is None or not messages or messages[-1].id != writing.id:
            return context
        written = dataclasses.replace(writing, text=self._stream.text)
        return ConversationContext.of([*messages[:-1], written], context.rows)
