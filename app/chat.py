"""Answering in a conversation: what the model reads, and what is kept of what it writes.

`ChatService` runs on the engine's thread and has its own connection to the store, so that a reply is saved
while it streams without the window's help.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.context import ConversationContext
from app.document_prompt import document_ranges, message_text
from app.profiles import DEFAULT_KEEP_RATIO, DEFAULT_TRIM_AT, DocumentMode, Overflow
from app.segment_plan import without_document_texts
from app.segment_progress import SegmentEvent
from app.segments import SegmentReader
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import Message, MessageState, Role
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import ModelError, OctavoError, sentence_of
from engine.events import Finished, GenerationStats, StopReason, Token, TurnsLeftOut
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

SAVE_INTERVAL_S = 0.5
"""A reply is saved with the first token after this long, which keeps a kill from costing a second of it."""


@dataclass(frozen=True)
class ReplySettings:
    """How a reply is written.

    Attributes:
        sampling: how tokens are chosen.
        kv: precision of the KV cache.
        system_prompt: an empty one leaves the model's own default.
        max_context: tokens of prompt and answer together at most, None for what the model and memory give.
        overflow: what happens to a conversation beyond that. What is chosen after a refusal is set for one
            reply.
        document_mode: how documents are read.
        trim_at: the share of the context beyond which `overflow` is due, room for an answer counted.
        keep_ratio: the share of the context that stays then.
        anyway: whether the user lets a message pass that does not fit into memory or `max_context`.
    """

    sampling: SamplingParams
    kv: KVSpec
    system_prompt: str
    max_context: int | None = None
    overflow: Overflow = Overflow.ASK
    document_mode: DocumentMode = DocumentMode.WHOLE
    trim_at: float = DEFAULT_TRIM_AT
    keep_ratio: float = DEFAULT_KEEP_RATIO
    anyway: bool = False


@dataclass(frozen=True)
class ReplyStarted:
    """A reply has its place in the conversation: `message` is its row, still empty."""

    message: Message


@dataclass(frozen=True)
class ReplyEnded:
    """A reply is over: `message` is its final row, `unsaved` says why its text could not be saved."""

    message: Message
    unsaved: StoreError | None = None


ReplyEvent = ReplyStarted | SegmentEvent | ReplyEnded


def prompt_messages(path: Sequence[Message], system_prompt: str) -> tuple[ChatMessage, ...]:
    """Return the conversation as the model reads it; replies without a word are left out."""
    return (*system_message(system_prompt), *conversation_context(path).messages)


def system_message(system_prompt: str) -> tuple[ChatMessage, ...]:
    """Return the message that tells the model how to be; none for an empty one."""
    return (ChatMessage("system", system_prompt),) if system_prompt.strip() else ()


def conversation_context(path: Sequence[Message]) -> ConversationContext:
    """Return all of a conversation as the model reads it; replies without a word are left out."""
    readable = [message for message in path if message_text(message.text, message.attachments)]
    prompt = [
        ChatMessage(
            message.role.value,
            message_text(message.text, message.attachments),
            document_ranges(message.attachments),
        )
        for message in readable
    ]
    return ConversationContext(tuple(readable), tuple(prompt))


class ChatService:
    """Writes replies into a store with an engine; all on one thread."""

    def __init__(self, store: ConversationStore, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._reader = SegmentReader(engine)

    def reply(
        self,
        conversation_id: int,
        leaf_id: int,
        settings: ReplySettings,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Iterator[ReplyEvent]:
        """Answer the message `leaf_id`: yield the reply's start, the engine's events and its end.

        `wanted_kv` tells the precision that the user wants while the reply is written, see `Engine.generate`.
        Whatever happens after the start, the reply ends with a final row; a failure of the engine is raised
        after that. Turns that are left out because the context is full, or memory short, stay in the
        conversation; where the model begins to read is remembered, so that the next reply begins there too.

        Raises:
            AdmissionError: the conversation does not fit; no reply was started.
            OctavoError: the conversation cannot be answered; no reply was started.
        """
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        context = conversation_context(self._store.path(leaf_id))
        if not any(message.role == Role.USER.value for message in context.messages):
            raise OctavoError("There is nothing to answer: the message is empty.")
        known = self._store.conversation(conversation_id).context_from
        context = self._fitting(context.read_from(known), conversation_id, settings)
        request = _request(context, conversation_id, settings)
        events = self._reader.reply(request, settings.document_mode, cancel, wanted_kv)
        started = self._store.begin_reply(conversation_id, leaf_id, self._engine.loaded.info.name)
        if context.first_id is not None and context.first_id != known:
            self._remember(conversation_id, context)
        reply = _ReplyInProgress(self._store, started)
        try:
            yield ReplyStarted(started)
            for event in events:
                if isinstance(event, TurnsLeftOut):
                    context = context.without(event.num_turns)
                    self._remember(conversation_id, context)
                reply.take(event)
                yield event
        except GeneratorExit:
            reply.end(MessageState.STOPPED)
            raise
        except Exception as error:
            yield reply.end(MessageState.FAILED, error=sentence_of(error))
            raise
        yield reply.end(MessageState.STOPPED if reply.was_stopped else MessageState.COMPLETE)

    def _fitting(
        self, context: ConversationContext, conversation_id: int, settings: ReplySettings
    ) -> ConversationContext:
        """Leave the oldest turns out where the context is full and the profile says so.

        Documents that are read in parts where they do not fit are no reason for that.
        """
        if settings.overflow is not Overflow.DROP:
            return context
        request = _request(context, conversation_id, settings)
        if settings.document_mode is DocumentMode.SEGMENTS:
            request = without_document_texts(request)
        return context.without(self._engine.turns_to_leave_out(request))

    def _remember(self, conversation_id: int, context: ConversationContext) -> None:
        """Keep where the model begins to read; a full disk must not end the reply."""
        try:
            self._store.set_context_from(conversation_id, context.first_id)
        except StoreError as error:
            log.warning("Where the context begins could not be saved: %s", error)


def _request(
    context: ConversationContext, conversation_id: int, settings: ReplySettings
) -> GenerationRequest:
    return GenerationRequest(
        (*system_message(settings.system_prompt), *context.messages),
        settings.sampling,
        settings.kv,
        settings.max_context,
        conversation_id,
        anyway=settings.anyway,
        may_trim=settings.overflow is Overflow.DROP,
        left_out_turns=context.left_out_turns,
    )


class _ReplyInProgress:
    """The text of a reply on its way into the store."""

    def __init__(self, store: ConversationStore, message: Message) -> None:
        self._store = store
        self._message = message
        self._parts: list[str] = []
        self._stats: GenerationStats | None = None
        self._saved_s = time.monotonic()
        self._save_failed = False

    @property
    def was_stopped(self) -> bool:
        """Whether the user stopped it."""
        return self._stats is not None and self._stats.stop_reason is StopReason.STOPPED

    def take(self, event: SegmentEvent) -> None:
        """Remember a token's text and the figures, and save from time to time."""
        if isinstance(event, Finished):
            self._stats = event.stats
        elif isinstance(event, Token) and event.text:
            self._parts.append(event.text)
            if time.monotonic() - self._saved_s >= SAVE_INTERVAL_S:
                self._save_partial()

    def _save_partial(self) -> None:
        """Save what there is; a full disk must not end the reply, its end tries once more."""
        self._saved_s = time.monotonic()
        try:
            self._store.save_partial(self._message.id, self._text)
        except StoreError as error:
            if not self._save_failed:
                log.warning("The reply could not be saved yet: %s", error)
            self._save_failed = True

    @property
    def _text(self) -> str:
        return "".join(self._parts)

    def end(self, state: MessageState, error: str | None = None) -> ReplyEnded:
        """Write the final row; where even that fails, hand the text over with the reason."""
        try:
            message = self._store.finish_reply(self._message.id, self._text, state, self._stats, error)
        except StoreError as unsaved:
            log.error("The reply could not be saved: %s", unsaved)
            return ReplyEnded(self._unsaved_row(state, error), unsaved)
        return ReplyEnded(message)

    def _unsaved_row(self, state: MessageState, error: str | None) -> Message:
        return dataclasses.replace(
            self._message, text=self._text, state=state, stats=self._stats, error=error
        )
