"""How the engine's thread writes a reply: its events told to the window, its text gathered for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

from app.chat import ChatService, ReplyEnded, ReplyEvent, ReplyStarted
from app.ledger.progress import ContextChanged, SummaryProgress
from app.reply_settings import ReplySettings
from app.segments.progress import SegmentProgress
from app.store.records import Message
from engine.admission import AdmissionError
from engine.cancel import CancelToken
from engine.events import CacheChanged, PrefillProgress, Token
from engine.guard import GuardAction
from engine.kv.precision import KVSpec
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling

log = logging.getLogger(__name__)


class GatheredText:
    """Text that one thread writes and another takes from time to time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parts: list[str] = []

    def add(self, text: str) -> None:
        """Add text to its end."""
        with self._lock:
            self._parts.append(text)

    def take(self) -> str:
        """Return what was added since the last call."""
        with self._lock:
            text = "".join(self._parts)
            self._parts.clear()
        return text


class ReplyWork:
    """Writes replies, on the engine's thread.

    Args:
        wanted_kv: tells the precision that the user wants now.
    """

    def __init__(
        self,
        chat: ChatService,
        told: EngineSignals,
        held: HeldTelling,
        text: GatheredText,
        wanted_kv: Callable[[], KVSpec],
    ) -> None:
        self._chat = chat
        self._told = told
        self._held = held
        self._text = text
        self._wanted_kv = wanted_kv

    def reply(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken
    ) -> Message | None:
        """Write a reply and tell of its progress; return its final row, None where it does not fit."""
        self._text.take()
        events = self._chat.reply(conversation_id, leaf_id, settings, cancel, self._wanted_kv)
        try:
            return self._follow(conversation_id, events)
        except AdmissionError as error:
            log.info("A message was not answered: %s", error)
            self._told.reply_refused.emit(conversation_id, leaf_id, error)
            return None
        finally:
            self._told.summary_progress.emit(conversation_id, None)

    def _follow(self, conversation_id: int, events: Iterator[ReplyEvent]) -> Message | None:
        message: Message | None = None
        is_summarizing = False
        for event in events:
            was_summarizing, is_summarizing = is_summarizing, isinstance(event, SummaryProgress)
            if was_summarizing and not is_summarizing:
                self._told.summary_progress.emit(conversation_id, None)
            match event:
                case ReplyStarted(message):
                    self._told.reply_started.emit(message)
                case PrefillProgress() | SegmentProgress():
                    self._told.prefill_progress.emit(0 if message is None else message.id, event)
                    continue  # what is read may not be in hand yet
                case SummaryProgress():
                    self._told.summary_progress.emit(conversation_id, event)
                case ContextChanged():
                    self._told.ledger_changed.emit(conversation_id)
                case CacheChanged():
                    self._held.take(conversation_id, event)
                case GuardAction():
                    self._told.guard_acted.emit(event)
                case Token(text):
                    self._text.add(text)
                case ReplyEnded(message):
                    self._ended(event)
            self._held.changed()
        return message

    def _ended(self, event: ReplyEnded) -> None:
        self._held.tell()
        if event.unsaved is not None:
            self._told.reply_unsaved.emit(event.message)
        self._told.reply_finished.emit(event.message)
        if event.unsaved is not None:
            raise event.unsaved
