"""What the next message would take of the context."""

from __future__ import annotations

import dataclasses

from app.document_prompt import document_text
from app.ledger.context import ConversationContext
from app.ledger.planning import ContextRoom
from app.ledger.run import Run, run_text
from app.ledger.trimming import TokenMeasure, TrimPlan, plan_trim, release_order
from app.profiles import DocumentMode, Overflow
from app.reply_settings import ReplySettings, system_message
from app.store.records import Attachment
from engine.context_usage import ContextUsage
from engine.requests import LoadedModel, PromptSize
from ui.context_counts import Asked, ContextCounts, ContextSize
from ui.context_use import UNKNOWN, ContextUse
from ui.token_counts import TokenCounts

_RELEASING = (Overflow.SUMMARIZE, Overflow.DROP)
_STEP_TOKENS = 16
"""A trim is planned anew when the question has grown by so much."""


class ContextBudget:
    """Adds up the tokens of a conversation, of the text being written and of its documents."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts
        self._contexts: tuple[LoadedModel, ContextCounts] | None = None

    def attachment_tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of one document as the model reads it."""
        return self._counts.count(document_text(attachment.title, attachment.text))

    def size(
        self,
        context: ConversationContext,
        system_prompt: str,
        loaded: LoadedModel | None,
        usage: ContextUsage | None,
    ) -> ContextSize:
        """Return what a context takes; `usage` says what is held of it."""
        if loaded is None or not self._counts.available:
            return ContextSize(None, True)
        return ContextCounts(self._counts, Asked(context)).size(loaded, system_prompt, usage)

    def estimate(
        self,
        asked: Asked,
        settings: ReplySettings,
        loaded: LoadedModel | None,
        usage: ContextUsage | None = None,
    ) -> ContextEstimate | None:
        """Return what tells the figures of the next prompt; None without a model to count with."""
        if loaded is None or not self._counts.available:
            return None
        last = self._contexts
        if last is None or last[0] is not loaded or not last[1].asked.is_like(asked):
            last = self._contexts = loaded, ContextCounts(self._counts, asked)
        return ContextEstimate(last[1], asked.text, settings, loaded, usage)

    def use(
        self,
        asked: Asked,
        settings: ReplySettings,
        loaded: LoadedModel | None,
        usage: ContextUsage | None = None,
    ) -> ContextUse:
        """Return what the next prompt takes of the loaded model's context, None without one.

        Where turns are to be released first, that is what it takes without them, and with summaries in their
        place that are as long as they can be.
        """
        estimate = self.estimate(asked, settings, loaded, usage)
        if estimate is None:
            return UNKNOWN
        return estimate.trimmed() if settings.overflow in _RELEASING else estimate.whole


class ContextEstimate:
    """What is asked, counted with a model and settings as the engine's thread will count it.

    Attributes:
        context: what the model reads, the question included.
        whole: what that takes.
        settings: how it is answered.
        loaded: the model.
    """

    def __init__(
        self,
        contexts: ContextCounts,
        text: str,
        settings: ReplySettings,
        loaded: LoadedModel,
        usage: ContextUsage | None = None,
    ) -> None:
        self._contexts = contexts
        self.settings = settings
        self.loaded = loaded
        self.context = contexts.context
        self._system_tokens = contexts.of_messages(system_message(settings.system_prompt))
        self._question_tokens = contexts.question_tokens(text)
        self._has_parts = settings.document_mode is DocumentMode.SEGMENTS
        self._fitting_tokens = loaded.plan_at(settings.kv).fitting_tokens
        most = settings.max_context
        self._limit_tokens = self._fitting_tokens if most is None else min(self._fitting_tokens, most)
        size = contexts.size(loaded, settings.system_prompt, usage)
        is_about = size.is_about or contexts.asked.has_question
        self.whole = dataclasses.replace(
            self._use(self.context), history_tokens=size.tokens, is_about=is_about
        )

    @property
    def is_due(self) -> bool:
        """Whether a trim is due, as far as that is known."""
        return self.whole.used_tokens is not None and self.room(self.context).is_due

    def room(self, context: ConversationContext) -> ContextRoom:
        """Return the room that there is for a context."""
        size = PromptSize(self._prompt_tokens(context), self._limit_tokens, self._fitting_tokens)
        return ContextRoom.of(size, self.loaded.info.context_tokens, self.settings)

    def plan(self, context: ConversationContext, room: ContextRoom, *, summarizes: bool) -> TrimPlan | None:
        """Return what brings a context down to what is kept; None where nothing may be released.

        For its own context the last plan is returned while the question has hardly grown.
        """
        if context is not self.context:
            return self._plan(context, room, summarizes)
        key = self.settings, (self._question_tokens or 0) // _STEP_TOKENS, summarizes
        return self._contexts.plan(key, lambda: self._plan(context, room, summarizes))

    def _plan(self, context: ConversationContext, room: ContextRoom, summarizes: bool) -> TrimPlan | None:
        return plan_trim(
            context,
            release_order(context, last=self._with_documents(context)),
            TokenMeasure(self._prompt_tokens, self._run_tokens, self._contexts.about),
            room.kept_tokens,
            summarizes=summarizes,
            enough_tokens=room.kept_tokens + room.margin_tokens,
            limit_tokens=room.limit_tokens,
        )

    def trimmed(self) -> ContextUse:
        """Return what it takes after the trim that is due; `whole` where none is."""
        if not self.is_due:
            return self.whole
        summarizes = self.settings.overflow is Overflow.SUMMARIZE
        plan = self.plan(self.context, self.room(self.context), summarizes=summarizes)
        if plan is None:
            return self.whole
        return dataclasses.replace(self._use(plan.context), released_turns=plan.num_turns)

    def _use(self, context: ConversationContext) -> ContextUse:
        """Return the parts of what a context takes, None for those of which not all is counted."""
        counted, asked = self._contexts.of(context), self._contexts.asked
        text, documents = self._question_tokens, self._contexts.attachment_tokens()
        around = self._around(context, 0)
        own = around - self._around(context, 1) if asked.has_question else 0
        history = None
        if documents is not None:
            history = self._system_tokens.tokens + counted.tokens + around - own - documents
        return ContextUse(
            history,
            text,
            documents,
            own,
            self._limit_tokens,
            self._fitting_tokens,
            self.loaded.info.context_tokens,
            document_tokens=counted.document_tokens if self._has_parts else 0,
            has_turns=bool(asked.context.turns),
            has_unanswered=bool(asked.context.turns) and asked.context.turns[-1].is_pending,
        )

    def _around(self, context: ConversationContext, fewer: int) -> int:
        """Return what the template puts around the messages of a context, the last few left away."""
        has_system = bool(self._system_tokens.tokens)
        return self.loaded.template.around(len(context.messages) - fewer, has_system)

    def _prompt_tokens(self, context: ConversationContext) -> int:
        """Return about how many tokens a context has that must be read whole."""
        counted = self._contexts.of(context)
        own = self._system_tokens.tokens + self._around(context, 0) + (self._question_tokens or 0)
        return own + counted.tokens - (counted.document_tokens if self._has_parts else 0)

    def _run_tokens(self, context: ConversationContext, run: Run) -> int:
        text = run_text(context, run)
        return self._contexts.of_messages(text.messages[text.first :]).tokens

    def _with_documents(self, context: ConversationContext) -> set[int]:
        """Return the turns whose documents are read in parts: they take little, and go last."""
        if not self._has_parts:
            return set()
        return {
            index
            for index, turn in enumerate(context.turns)
            if any(message.attachments for message in turn.messages)
        }
