"""What the next message would take of the context."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from app.document_cost import ReadingRoom, read_whole
from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.planning import ContextRoom, unread_documents
from app.ledger.records import attachment_key
from app.ledger.run import Run, run_text
from app.ledger.trimming import TokenMeasure, TrimPlan, plan_trim, release_order
from app.profiles import DocumentMode, Overflow
from app.reply_settings import ReplySettings, system_message
from app.store.records import Attachment
from engine.admission import reading_room_tokens
from engine.context_usage import ContextUsage
from engine.requests import LoadedModel, PromptSize
from ui.context_counts import Asked, ContextCounts, ContextSize
from ui.context_use import UNKNOWN, ContextUse
from ui.document_counts import DocumentCounts
from ui.token_counts import TokenCounts

_RELEASING = (Overflow.SUMMARIZE, Overflow.DROP)
_NOT_WHOLE = (DocumentWay.SEGMENTS, DocumentWay.LOOK_UP)
_STEP_TOKENS = 16
"""A trim is planned anew when the question has grown by so much."""


class ContextBudget:
    """Adds up the tokens of a conversation, of the text being written and of its documents."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = DocumentCounts(counts)
        self._contexts: tuple[LoadedModel, ContextCounts] | None = None

    def attachment_tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of one document when the model reads it whole."""
        return self._counts.document(attachment)

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
        document_room: the room that documents are read in; old turns leave it where that helps.
        whole_documents: the documents of the question that are read whole.
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
        self._fitting_tokens = loaded.plan_at(settings.kv).fitting_tokens
        most = settings.max_context
        self._limit_tokens = self._fitting_tokens if most is None else min(self._fitting_tokens, most)
        self.whole_documents: tuple[Attachment, ...] = ()
        self.document_room = self._document_room()
        self.whole_documents = self._read_whole()
        size = contexts.size(loaded, settings.system_prompt, usage)
        is_about = size.is_about or contexts.asked.has_question
        waiting = self._open_tokens(drafts=False)
        history = None if size.tokens is None or waiting is None else size.tokens + waiting
        self.whole = dataclasses.replace(self._use(self.context), history_tokens=history, is_about=is_about)

    @property
    def is_due(self) -> bool:
        """Whether a trim is due, as far as that is known."""
        return self.whole.used_tokens is not None and self.room(self.context).is_due

    def room(self, context: ConversationContext) -> ContextRoom:
        """Return the room that there is for a context."""
        size = PromptSize(self._prompt_tokens(context), self._limit_tokens, self._fitting_tokens)
        reading = reading_room_tokens(self._limit_tokens) if self._to_read(context) else 0
        return ContextRoom.of(size, self.loaded.info.context_tokens, self.settings, reading)

    def plan(self, context: ConversationContext, room: ContextRoom, *, summarizes: bool) -> TrimPlan | None:
        """Return what brings a context down to what is kept; None where nothing may be released.

        For its own context the last plan is returned while the question has hardly grown.
        """
        if context is not self.context:
            return self._plan(context, room, summarizes)
        key = *self._plan_key, self.whole_documents, summarizes
        return self._contexts.plan(key, lambda: self._plan(context, room, summarizes))

    @property
    def _plan_key(self) -> tuple[ReplySettings, int]:
        return self.settings, (self._question_tokens or 0) // _STEP_TOKENS

    def _plan(self, context: ConversationContext, room: ContextRoom, summarizes: bool) -> TrimPlan | None:
        return plan_trim(
            context,
            release_order(context),
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
        text, documents = self._question_tokens, self._open_tokens(drafts=True)
        waiting = self._open_tokens(drafts=False)
        around = self._around(context, 0)
        own = around - self._around(context, 1) if asked.has_question else 0
        named = self._named_tokens()
        history = None
        if waiting is not None and named is not None:
            history = self._system_tokens.tokens + counted.tokens + around - own - named + waiting
        return ContextUse(
            history,
            text,
            None if documents is None or named is None else documents + named,
            own,
            self._limit_tokens,
            self._fitting_tokens,
            self.loaded.info.context_tokens,
            reading_tokens=self._reading_tokens(context),
            has_turns=bool(asked.context.turns),
            has_unanswered=bool(asked.context.turns) and asked.context.turns[-1].is_pending,
            document_room=self.document_room,
        )

    # Documents.

    @property
    def whole_tokens(self) -> int | None:
        """Tokens of the question's documents that are read whole, None while not all are counted."""
        return _total(map(self._contexts.document_tokens, self.whole_documents))

    def document_tokens(self, document: Attachment) -> int:
        """Return the tokens of a document that is read whole, 0 while they are not counted."""
        return self._contexts.document_tokens(document) or 0

    def _document_room(self) -> ReadingRoom:
        """Return the room for documents, as the engine's thread decides by which way they are read.

        Old turns leave it where it is too small for all of them, those chosen to be read otherwise included.
        """
        room = ReadingRoom(self._limit_tokens, self._prompt_tokens(self.context), self._question_tokens or 0)
        tokens = _total(map(self._contexts.document_tokens, self._to_read(self.context)))
        if tokens is None or tokens <= room.whole_tokens or self.settings.overflow not in _RELEASING:
            return room
        return dataclasses.replace(room, other_tokens=self._least_tokens())

    def _read_whole(self) -> tuple[Attachment, ...]:
        """Return the documents of the question that are read whole: as chosen, else as far as they fit.

        Where not all is counted, all of them.
        """
        documents = self._contexts.open_documents
        tokens = [self._contexts.document_tokens(each) for each in documents]
        if self.settings.document_mode is DocumentMode.WHOLE or None in tokens or not documents:
            return documents
        chosen = [self.context.way(attachment_key(each.id)) for each in documents]
        reading = reading_room_tokens(self._limit_tokens) if unread_documents(self.context) else 0
        room = dataclasses.replace(self.document_room, reading_tokens=reading)
        is_whole = read_whole([each or 0 for each in tokens], chosen, room)
        return tuple(each for each, whole in zip(documents, is_whole, strict=True) if whole)

    def _least_tokens(self) -> int:
        """Return what the prompt has beside the documents once all has left it that may."""
        room = dataclasses.replace(self.room(self.context), kept_tokens=0, due_tokens=0, prepare_tokens=0)
        summarizes = self.settings.overflow is Overflow.SUMMARIZE
        plan = self._contexts.plan(
            (*self._plan_key, "least"), lambda: self._plan(self.context, room, summarizes)
        )
        return self._prompt_tokens(self.context) if plan is None else plan.num_tokens

    def _open_tokens(self, *, drafts: bool | None = None) -> int | None:
        """Return the tokens of the question's documents as they are read, None while not all are counted.

        Args:
            drafts: only those of the message that is written, or only others; None for all.
        """
        asked = {each.id for each in self._contexts.asked.attachments}
        whole = {each.id for each in self.whole_documents}
        return _total(
            self._contexts.document_tokens(each)
            if each.id in whole
            else self._contexts.placeholder_tokens(each)
            for each in self._contexts.open_documents
            if drafts in (None, each.id in asked)
        )

    def _named_tokens(self) -> int | None:
        """Return the tokens of the lines for drafts for which another way than whole is chosen."""
        asked = self._contexts.asked.attachments
        ways = ((each, self.context.way(attachment_key(each.id))) for each in asked)
        return _total(self._contexts.placeholder_tokens(each) for each, way in ways if way in _NOT_WHOLE)

    def _to_read(self, context: ConversationContext) -> list[Attachment]:
        """Return the documents that will be read in segments, or looked up, for the question."""
        whole = {each.id for each in self.whole_documents}
        open_ones = [each for each in self._contexts.open_documents if each.id not in whole]
        return [*unread_documents(context), *open_ones]

    def _reading_tokens(self, context: ConversationContext) -> int:
        tokens = _total(map(self._contexts.document_tokens, self._to_read(context)))
        most = reading_room_tokens(self._limit_tokens)
        return most if tokens is None else min(most, tokens)

    # Prompts.

    def _around(self, context: ConversationContext, fewer: int) -> int:
        """Return what the template puts around the messages of a context, the last few left away."""
        has_system = bool(self._system_tokens.tokens)
        return self.loaded.template.around(len(context.messages) - fewer, has_system)

    def _prompt_tokens(self, context: ConversationContext) -> int:
        """Return about how many tokens a context has that must be read whole."""
        counted = self._contexts.of(context)
        own = self._system_tokens.tokens + self._around(context, 0) + (self._question_tokens or 0)
        return own + counted.tokens + (self._open_tokens() or 0)

    def _run_tokens(self, context: ConversationContext, run: Run) -> int:
        text = run_text(context, run)
        return self._contexts.of_messages(text.messages[text.first :]).tokens


def _total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts, None where one of them is not known."""
    known = list(counts)
    return None if None in known else sum(each or 0 for each in known)
