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
from typing import Protocol

from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import Message, MessageState, Role
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.errors import ModelError, OctavoError, sentence_of
from engine.events import Finished, GenerationEvent, GenerationStats, StopReason, Token
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.sampling import SamplingParams

log = logging.getLogger(__name__)

SAVE_INTERVAL_S = 0.5
"""A reply is saved with the first token after this long, which keeps a kill from costing a second of it."""


@dataclass(frozen=True)
class ReplySettings:
    """How a reply is written; an empty system prompt leaves the model's own default."""

    sampling: SamplingParams
    kv: KVSpec
    system_prompt: str


@dataclass(frozen=True)
class ReplyStarted:
    """A reply has its place in the conversation: `message` is its row, still empty."""

    message: Message


@dataclass(frozen=True)
class ReplyEnded:
    """A reply is over: `message` is its final row, `unsaved` says why its text could not be saved."""

    message: Message
    unsaved: StoreError | None = None


ReplyEvent = ReplyStarted | GenerationEvent | ReplyEnded


def document_text(title: str, text: str) -> str:
    """Return what the model reads for a document."""
    return f"Document: {title}\n\n{text.strip()}\n\n(End of the document.)"


class TitledText(Protocol):
    """A document or an attachment: what a model reads of it."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def text(self) -> str:
        """What is in it."""


def message_text(text: str, documents: Sequence[TitledText]) -> str:
    """Return what the model reads for a message: its documents first, so that they stay a shared prefix."""
    parts = [document_text(document.title, document.text) for document in documents]
    return "\n\n".join([*parts, text] if text else parts)


def prompt_messages(path: Sequence[Message], system_prompt: str) -> tuple[ChatMessage, ...]:
    """Return the conversation as the model reads it; replies without a word are left out."""
    messages = [ChatMessage("system", system_prompt)] if system_prompt.strip() else []
    for message in path:
        content = message_text(message.text, message.attachments)
        if content:
            messages.append(ChatMessage(message.role.value, content))
    return tuple(messages)


class ChatService:
    """Writes replies into a store with an engine; all on one thread."""

    def __init__(self, store: ConversationStore, engine: Engine) -> None:
        self._store = store
        self._engine = engine

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
        after that.

        Raises:
            OctavoError: the conversation cannot be answered; no reply was started.
        """
        if self._engine.loaded is None:
            raise ModelError("No model is loaded. Choose one first.")
        messages = prompt_messages(self._store.path(leaf_id), settings.system_prompt)
        if not any(message.role == Role.USER.value for message in messages):
            raise OctavoError("There is nothing to answer: the message is empty.")
        request = GenerationRequest(messages, settings.sampling, settings.kv)
        started = self._store.begin_reply(conversation_id, leaf_id, self._engine.loaded.info.name)
        yield ReplyStarted(started)
        reply = _ReplyInProgress(self._store, started)
        try:
            for event in self._engine.generate(request, cancel, wanted_kv):
                reply.take(event)
                yield event
        except GeneratorExit:
            reply.end(MessageState.STOPPED)
            raise
        except Exception as error:
            yield reply.end(MessageState.FAILED, error=sentence_of(error))
            raise
        yield reply.end(MessageState.STOPPED if reply.was_stopped else MessageState.COMPLETE)


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

    def take(self, event: GenerationEvent) -> None:
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
