"""What the next message would take of the context."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app.document_prompt import document_text
from app.ledger.context import ConversationContext
from app.ledger.planning import ContextRoom
from app.ledger.run import Run, run_text
from app.ledger.trimming import TokenMeasure, TrimPlan, plan_trim, release_order
from app.profiles import DocumentMode, Overflow
from app.reply_settings import ReplySettings, system_message
from app.store.records import Attachment, Message, MessageState, Role
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from engine.requests import LoadedModel, PromptSize
from ui.context_use import UNKNOWN, ContextUse
from ui.token_counts import TokenCounts

_RELEASING = (Overflow.SUMMARIZE, Overflow.DROP)
_NEVER = datetime.fromtimestamp(0, UTC)
_CHARACTERS_PER_TOKEN = 5
"""A guess for texts that are being counted."""


@dataclass(frozen=True)
class Asked:
    """What is to be answered next.

    Attributes:
        context: what the model reads of the conversation so far.
        text: the text being written.
        attachments: its documents.
    """

    context: ConversationContext
    text: str = ""
    attachments: tuple[Attachment, ...] = ()

    @property
    def has_question(self) -> bool:
        """Whether anything is being written."""
        return bool(self.text or self.attachments)

    @property
    def with_question(self) -> ConversationContext:
        """The context with what is being written as its last turn, as it will be when that is sent."""
        if not self.has_question:
            return self.context
        path = self.context.path
        question = Message(
            id=0,
            conversation_id=0,
            parent_id=path[-1].id if path else None,
            role=Role.USER,
            text=self.text,
            created_at=_NEVER,
            state=MessageState.COMPLETE,
            attachments=self.attachments,
            siblings=(0,),
            stats=None,
            model=None,
            error=None,
        )
        return ConversationContext((*path, question), self.context.rows)


class ContextBudget:
    """Adds up the tokens of a conversation, of the text being written and of its documents."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts

    def attachment_tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of one document as the model reads it."""
        return self._counts.count(document_text(attachment.title, attachment.text))

    def estimate(
        self, asked: Asked, settings: ReplySettings, loaded: LoadedModel | None
    ) -> ContextEstimate | None:
        """Return what tells the figures of the next prompt; None without a model to count with."""
        if loaded is None or not self._counts.available:
            return None
        return ContextEstimate(self._counts, asked, settings, loaded)

    def use(self, asked: Asked, settings: ReplySettings, loaded: LoadedModel | None) -> ContextUse:
        """Return what the next prompt takes of the loaded model's context, None without one.

        Where turns are to be released first, that is what it takes without them, and with summaries in their
        place that are as long as they can be.
        """
        estimate = self.estimate(asked, settings, loaded)
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
        self, counts: TokenCounts, asked: Asked, settings: ReplySettings, loaded: LoadedModel
    ) -> None:
        self._counts = counts
        self._asked = asked
        self.settings = settings
        self.loaded = loaded
        self._system = system_message(settings.system_prompt)
        self._has_parts = settings.document_mode is DocumentMode.SEGMENTS
        self._fitting_tokens = loaded.plan_at(settings.kv).fitting_tokens
        most = settings.max_context
        self._limit_tokens = self._fitting_tokens if most is None else min(self._fitting_tokens, most)
        self.context = asked.with_question
        self.whole = self._use(self.context, _sum([self._tokens(each) for each in self._read(self.context)]))

    @property
    def is_due(self) -> bool:
        """Whether a trim is due, as far as that is known."""
        return self.whole.used_tokens is not None and self.room(self.context).is_due

    def room(self, context: ConversationContext) -> ContextRoom:
        """Return the room that there is for a context."""
        size = PromptSize(self._prompt_tokens(context), self._limit_tokens, self._fitting_tokens)
        return ContextRoom.of(size, self.loaded.info.context_tokens, self.settings)

    def plan(self, context: ConversationContext, room: ContextRoom, *, summarizes: bool) -> TrimPlan | None:
        """Return what brings a context down to what is kept; None where nothing may be released."""
        return plan_trim(
            context,
            release_order(context, last=self._with_documents(context)),
            TokenMeasure(self._prompt_tokens, self._run_tokens, self._about),
            room.kept_tokens,
            summarizes=summarizes,
            enough_tokens=room.kept_tokens + room.margin_tokens,
        )

    def trimmed(self) -> ContextUse:
        """Return what it takes after the trim that is due; `whole` where none is."""
        plan = None
        if self.is_due:
            summarizes = self.settings.overflow is Overflow.SUMMARIZE
            plan = self.plan(self.context, self.room(self.context), summarizes=summarizes)
        if plan is None:
            return self.whole
        use = self._use(plan.context, sum(self._tokens_about(each) for each in self._read(plan.context)))
        return dataclasses.replace(use, released_turns=len(plan.released))

    def _use(self, context: ConversationContext, message_tokens: int | None) -> ContextUse:
        """Return the parts of what a context takes whose messages have so many tokens."""
        asked, has_system = self._asked, bool(self._system)
        num_messages = len(context.messages)
        template = self.loaded.template
        around = template.around(num_messages, has_system)
        own = around - template.around(num_messages - 1, has_system) if asked.has_question else 0
        text = self._counts.count(asked.text)
        documents = _sum(
            [self._counts.count(document_text(each.title, each.text)) for each in asked.attachments]
        )
        history = None
        if message_tokens is not None and text is not None and documents is not None:
            history = message_tokens + around - own - text - documents
        return ContextUse(
            history,
            text,
            documents,
            own,
            self._limit_tokens,
            self._fitting_tokens,
            self.loaded.info.context_tokens,
            document_tokens=self._document_tokens(context),
            has_turns=bool(asked.context.turns),
        )

    def _read(self, context: ConversationContext) -> tuple[ChatMessage, ...]:
        return (*self._system, *context.messages)

    def _prompt_tokens(self, context: ConversationContext) -> int:
        """Return about how many tokens a context has that must be read whole."""
        around = self.loaded.template.around(len(context.messages), bool(self._system))
        tokens = sum(self._tokens_about(each) for each in self._read(context))
        return tokens + around - self._document_tokens(context)

    def _run_tokens(self, context: ConversationContext, run: Run) -> int:
        text = run_text(context, run)
        return sum(self._tokens_about(each) for each in text.messages[text.first :])

    def _with_documents(self, context: ConversationContext) -> set[int]:
        """Return the turns whose documents are read in parts: they take little, and go last."""
        if not self._has_parts:
            return set()
        return {
            index
            for index, turn in enumerate(context.turns)
            if any(message.attachments for message in turn.messages)
        }

    def _document_tokens(self, context: ConversationContext) -> int:
        """Return the tokens of all documents, as far as they are counted, where they may be read in parts."""
        if not self._has_parts:
            return 0
        return sum(
            self._counts.count(message.content[each.start : each.stop]) or 0
            for message in context.messages
            for each in message.documents
            if each.kind is SpanKind.DOCUMENT
        )

    def _tokens(self, message: ChatMessage) -> int | None:
        """Return the tokens of a message, None while not all of it is counted."""
        return _sum([self._counts.count(text) for text in _pieces(message)])

    def _tokens_about(self, message: ChatMessage) -> int:
        return sum(self._about(text) for text in _pieces(message))

    def _about(self, text: str) -> int:
        """Return the tokens of a text, a guess until they are counted."""
        counted = self._counts.count(text)
        return len(text) // _CHARACTERS_PER_TOKEN if counted is None else counted


def _pieces(message: ChatMessage) -> Iterator[str]:
    """Yield the texts of a message to be counted each by itself: a document is long, and always the same."""
    end = 0
    for each in message.documents:
        yield message.content[end : each.start]
        yield message.content[each.start : each.stop]
        end = each.stop
    yield message.content[end:]


def _sum(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(count or 0 for count in counts)
