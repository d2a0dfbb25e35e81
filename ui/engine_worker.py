"""The one thread that owns MLX: it loads, generates and saves, one request at a time."""

from __future__ import annotations

import enum
import itertools
import logging
import queue
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from app.chat import ChatService, ReplyEnded, ReplySettings, ReplyStarted
from app.paths import AppPaths
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from engine.backend import start_backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.events import CacheChanged, PrefillProgress, Token
from engine.kv.precision import KVSpec, PrecisionError

log = logging.getLogger(__name__)


class EngineState(enum.Enum):
    """What the engine is doing."""

    EMPTY = "no model"
    LOADING = "loading"
    READY = "ready"
    GENERATING = "generating"


@dataclass(frozen=True)
class Failure:
    """Something went wrong: a short title, a sentence for the user, and details for a report."""

    title: str
    message: str
    details: str


class Priority(enum.IntEnum):
    """Which waiting request goes first; a stop does not wait at all, it is a flag that the work checks."""

    CONTROL = 0
    USER = 1


@dataclass(order=True)
class _Request:
    """One entry of the queue; equal priorities go first come, first served."""

    priority: Priority
    number: int
    run: Callable[[CancelToken], None] | None = field(compare=False)
    cancel: CancelToken = field(compare=False)


class EngineWorker(QThread):
    """The engine's thread: takes requests from a queue, one at a time.

    Attributes:
        wanted_kv: the precision that the user wants now, set by the window's thread.
    """

    state_changed = Signal(object)
    model_changed = Signal(object)
    load_progress = Signal(object)
    reply_started = Signal(object)
    prefill_progress = Signal(int, object)
    kv_changed = Signal(int, object)
    kv_refused = Signal(object)
    reply_finished = Signal(object)
    reply_unsaved = Signal(object)
    failed = Signal(object)

    def __init__(self, paths: AppPaths, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName("engine")
        self.wanted_kv = DEFAULT_KV
        self._paths = paths
        self._requests: queue.PriorityQueue[_Request] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._pending: dict[CancelToken, bool] = {}
        self._kv_waits = False
        self._held_by = 0
        self._text: list[str] = []
        self._engine: Engine
        self._chat: ChatService

    # Called from the window's thread.

    def put(
        self, priority: Priority, run: Callable[[CancelToken], None] | None, *, is_stoppable: bool = True
    ) -> None:
        """Queue a request, which `stop` ends or only `cancel_all`; None ends the thread."""
        request = _Request(priority, next(self._numbers), run, CancelToken())
        with self._lock:
            self._pending[request.cancel] = is_stoppable
        self._requests.put(request)

    def want_kv(self, kv: KVSpec) -> None:
        """Have the cache brought to a precision; of several wishes the last one counts."""
        self.wanted_kv = kv
        with self._lock:
            waits, self._kv_waits = self._kv_waits, True
        if not waits:
            self.put(Priority.CONTROL, self.apply_kv, is_stoppable=False)

    def stop(self) -> None:
        """Cancel what the user can stop, whether it runs or waits."""
        with self._lock:
            for cancel, is_stoppable in self._pending.items():
                if is_stoppable:
                    cancel.cancel()

    def cancel_all(self) -> None:
        """Cancel the request that runs and all that wait."""
        with self._lock:
            self._kv_waits = False
            for cancel in self._pending:
                cancel.cancel()

    def shutdown(self) -> None:
        """Cancel everything and end the thread."""
        self.cancel_all()
        self.put(Priority.CONTROL, None)

    def take_text(self) -> str:
        """Return the text gathered since the last call."""
        with self._lock:
            text = "".join(self._text)
            self._text.clear()
        return text

    # Everything below runs on the engine's thread.

    def run(self) -> None:
        """Serve requests until the one that ends the thread."""
        try:
            self._engine = Engine(start_backend())
            store = ConversationStore.open(self._paths.conversations_db)
        except Exception as error:
            log.exception("The engine could not start.")
            self.failed.emit(_failure(error))
            return
        self._chat = ChatService(store, self._engine)
        while (request := self._requests.get()).run is not None:
            self._serve(request, request.run)
        self._engine.unload()
        store.close()

    def _serve(self, request: _Request, run: Callable[[CancelToken], None]) -> None:
        try:
            request.cancel.check()
            run(request.cancel)
        except Cancelled:
            log.info("A request was stopped.")
        except Exception as error:
            log.exception("A request failed.")
            self.failed.emit(_failure(error))
        finally:
            with self._lock:
                del self._pending[request.cancel]
            self.state_changed.emit(EngineState.READY if self._engine.loaded else EngineState.EMPTY)

    def load(self, path: Path, kv: KVSpec, cancel: CancelToken) -> None:
        """Load a model and tell of it, or of its absence where that fails.

        A precision kept from another model is no reason to be without this one.
        """
        self.state_changed.emit(EngineState.LOADING)
        try:
            try:
                self._engine.load(path, kv, cancel=cancel, on_progress=self.load_progress.emit)
            except PrecisionError as error:
                self.kv_refused.emit(error)
                self._engine.load(path, DEFAULT_KV, cancel=cancel, on_progress=self.load_progress.emit)
        finally:
            self.model_changed.emit(self._engine.loaded)

    def unload(self) -> None:
        """Eject the model."""
        self._engine.unload()
        self.model_changed.emit(None)

    def apply_kv(self, cancel: CancelToken) -> None:
        """Bring the cache to the precision that is wanted now; after a reply that is done already."""
        with self._lock:
            self._kv_waits = False
        changed = self._engine.apply_kv(self.wanted_kv, cancel)
        if changed is not None:
            self.kv_changed.emit(self._held_by, changed)

    def forget(self, conversation_id: int) -> None:
        """Give the memory of a conversation back, if it is the one that is held."""
        if conversation_id == self._held_by:
            self._engine.forget()
            self.kv_changed.emit(conversation_id, None)

    def reply(self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken) -> None:
        """Write a reply and tell of its progress."""
        self.state_changed.emit(EngineState.GENERATING)
        self.take_text()
        message_id = 0
        events = self._chat.reply(conversation_id, leaf_id, settings, cancel, lambda: self.wanted_kv)
        for event in events:
            match event:
                case ReplyStarted(message):
                    message_id = message.id
                    self.reply_started.emit(message)
                case PrefillProgress():
                    self._held_by = conversation_id
                    self.prefill_progress.emit(message_id, event)
                case CacheChanged():
                    self.kv_changed.emit(conversation_id, event)
                case Token(text):
                    with self._lock:
                        self._text.append(text)
                case ReplyEnded(message, unsaved):
                    self.kv_changed.emit(self._held_by, self._engine.held())
                    if unsaved is not None:
                        self.reply_unsaved.emit(message)
                    self.reply_finished.emit(message)
                    if unsaved is not None:
                        raise unsaved


def _failure(error: Exception) -> Failure:
    details = "".join(traceback.format_exception(error))
    if isinstance(error, OctavoError):
        return Failure("That did not work", str(error), details)
    sentence = "The engine met an unexpected error and goes on. Copy the details if you want to report it."
    return Failure("Something went wrong", f"{sentence} ({type(error).__name__}: {error})", details)
