"""The one thread that owns MLX, and its face in the window's thread.

`EngineThread` lives in the window's thread: its methods put requests into a queue and return at once, its
signals arrive in the window's thread. `_Worker` is the thread: it loads, generates and saves. Only plain,
frozen data crosses. Text is not signalled token by token but gathered and drained by the window with
`EngineThread.take_text`, so that a fast model cannot flood the event loop.
"""

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

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QThread, Signal

from app.chat import ChatService, ReplyEnded, ReplySettings, ReplyStarted
from app.paths import AppPaths
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from engine.backend import start_backend
from engine.cancel import CancelToken
from engine.engine import Engine, LoadedModel
from engine.errors import Cancelled, OctavoError
from engine.events import PrecisionChanged, PrefillProgress, Token
from engine.kv.precision import KVSpec

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


class EngineThread(QObject):
    """Sends requests to the engine and tells what came of them.

    Signals:
        state_changed(EngineState): the engine began or ended something.
        load_progress(LoadProgress): loading goes on.
        model_loaded(LoadedModel): a model is ready.
        model_unloaded(): there is no model now, because it was ejected or loading was stopped or failed.
        reply_started(Message): the reply has its row in the store, still empty.
        prefill_progress(int, PrefillProgress): message id, and how far the prompt is read.
        kv_changed(KVUsage): another precision has reached the cache that is held.
        reply_finished(Message): the reply's final row.
        reply_unsaved(Message): the reply's final row could not be saved; `reply_finished` follows.
        failed(Failure): a request failed; the engine goes on.
    """

    state_changed = Signal(object)
    load_progress = Signal(object)
    model_loaded = Signal(object)
    model_unloaded = Signal()
    reply_started = Signal(object)
    prefill_progress = Signal(int, object)
    kv_changed = Signal(object)
    reply_finished = Signal(object)
    reply_unsaved = Signal(object)
    failed = Signal(object)

    def __init__(self, paths: AppPaths, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = EngineState.EMPTY
        self.loaded: LoadedModel | None = None
        self._worker = _Worker(paths, self)
        self._worker.state_changed.connect(self._take_state)
        self._worker.model_changed.connect(self._take_model)
        self._worker.load_progress.connect(self.load_progress)
        self._worker.reply_started.connect(self.reply_started)
        self._worker.prefill_progress.connect(self.prefill_progress)
        self._worker.kv_changed.connect(self.kv_changed)
        self._worker.reply_unsaved.connect(self.reply_unsaved)
        self._worker.reply_finished.connect(self.reply_finished)
        self._worker.failed.connect(self.failed)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def load(self, path: Path, kv: KVSpec) -> None:
        """Load the model at `path` in place of the present one; what runs now is stopped first."""
        self.stop()
        self._worker.put(Priority.USER, lambda cancel: self._worker.load(path, kv, cancel))

    def unload(self) -> None:
        """Eject the model; what runs now is stopped first."""
        self.stop()
        self._worker.put(Priority.CONTROL, lambda cancel: self._worker.unload())

    def reply(self, conversation_id: int, leaf_id: int, settings: ReplySettings) -> None:
        """Answer the message `leaf_id`."""
        self._worker.wanted_kv = settings.kv
        self._worker.put(
            Priority.USER, lambda cancel: self._worker.reply(conversation_id, leaf_id, settings, cancel)
        )

    def set_kv(self, kv: KVSpec) -> None:
        """Change the precision of the conversation that is held.

        A reply that runs takes it over with its next chunk or token. Pages of another size wait for the next.
        """
        self._worker.wanted_kv = kv
        self._worker.put(Priority.CONTROL, lambda cancel: self._worker.apply_kv(), is_stoppable=False)

    def stop(self) -> None:
        """Stop what runs or waits now, loading or replying; it ends within one step of its work."""
        self._worker.stop_all()

    def take_text(self) -> str:
        """Return the text of the running reply that was decoded since the last call."""
        return self._worker.take_text()

    def shutdown(self) -> None:
        """Stop everything, save what there is of a reply, end the thread and hand out its last signals."""
        self._worker.shutdown()
        self._worker.wait()
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)

    def _take_state(self, state: EngineState) -> None:
        self.state = state
        self.state_changed.emit(state)

    def _take_model(self, loaded: LoadedModel | None) -> None:
        self.loaded = loaded
        if loaded is None:
            self.model_unloaded.emit()
        else:
            self.model_loaded.emit(loaded)


class _Worker(QThread):
    """The engine's thread: takes requests from a queue, one at a time.

    Attributes:
        wanted_kv: the precision that the user wants now, set by the window's thread.
    """

    state_changed = Signal(object)
    model_changed = Signal(object)
    load_progress = Signal(object)
    reply_started = Signal(object)
    prefill_progress = Signal(int, object)
    kv_changed = Signal(object)
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
        self._pending: set[CancelToken] = set()
        self._text: list[str] = []
        self._engine: Engine
        self._chat: ChatService

    # Called from the window's thread.

    def put(
        self, priority: Priority, run: Callable[[CancelToken], None] | None, *, is_stoppable: bool = True
    ) -> None:
        """Queue a request; None ends the thread."""
        request = _Request(priority, next(self._numbers), run, CancelToken())
        if is_stoppable:
            with self._lock:
                self._pending.add(request.cancel)
        self._requests.put(request)

    def stop_all(self) -> None:
        """Cancel the request that runs and those that wait."""
        with self._lock:
            for cancel in self._pending:
                cancel.cancel()

    def shutdown(self) -> None:
        """Cancel everything and end the thread."""
        self.stop_all()
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
                self._pending.discard(request.cancel)
            self.state_changed.emit(EngineState.READY if self._engine.loaded else EngineState.EMPTY)

    def load(self, path: Path, kv: KVSpec, cancel: CancelToken) -> None:
        """Load a model and tell of it, or of its absence where that fails."""
        self.state_changed.emit(EngineState.LOADING)
        try:
            self._engine.load(path, kv, cancel=cancel, on_progress=self.load_progress.emit)
        finally:
            self.model_changed.emit(self._engine.loaded)

    def unload(self) -> None:
        """Eject the model."""
        self._engine.unload()
        self.model_changed.emit(None)

    def apply_kv(self) -> None:
        """Bring the cache to the precision that is wanted now; after a reply that is done already."""
        usage = self._engine.apply_kv(self.wanted_kv)
        if usage is not None:
            self.kv_changed.emit(usage)

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
                    self.prefill_progress.emit(message_id, event)
                case PrecisionChanged(usage):
                    self.kv_changed.emit(usage)
                case Token(text):
                    with self._lock:
                        self._text.append(text)
                case ReplyEnded(message, unsaved):
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
