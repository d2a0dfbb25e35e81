"""The engine's thread as the window's thread sees it.

`EngineThread` lives in the window's thread: its methods put requests into a queue and return at once, its
signals arrive in the window's thread. Only plain, frozen data crosses. Text is not signalled token by token
but gathered and drained by the window with `EngineThread.take_text`, so that a fast model cannot flood the
event loop.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Signal

from app.chat import ReplySettings
from app.paths import AppPaths
from engine.engine import LoadedModel
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from ui.engine_worker import EngineState, EngineWorker
from ui.request_queue import Priority


class EngineThread(QObject):
    """Sends requests to the engine and tells what came of them.

    Attributes:
        state: what the engine is doing.
        loaded: the model that is there, None without one.
        guard: says how short memory is; to be given samples by whoever watches it.

    Signals:
        state_changed(EngineState): the engine began or ended something.
        load_progress(LoadProgress): loading goes on.
        model_loaded(LoadedModel): a model is ready.
        model_unloaded(): there is no model now, because it was ejected or loading was stopped or failed.
        reply_started(Message): the reply has its row in the store, still empty.
        prefill_progress(int, PrefillProgress | SegmentProgress): message id, and how far the prompt is read.
        kv_changed(int, CacheChanged | None): whose cache the engine holds now, and what is in it.
        kv_refused(PrecisionError): the model cannot have the precision and was loaded with the default.
        reply_finished(Message): the reply's final row.
        reply_refused(int, int, AdmissionError): conversation and message that cannot be answered; no row was
            begun.
        load_refused(Path, AdmissionError): a model that does not fit; the present one stays.
        guard_acted(GuardAction): memory was short and something was done, or taken back.
        pages_changed(int, PageMap | None): whose pages the engine holds, and which; only while they are
            watched, twice a second at most.
        rebuild_progress(int, PrefillProgress): conversation id, and how far it is read again.
        reply_unsaved(Message): the reply's final row could not be saved; `reply_finished` follows.
        failed(Failure): a request failed; the engine goes on.
    """

    state_changed = Signal(object)
    load_progress = Signal(object)
    model_loaded = Signal(object)
    model_unloaded = Signal()
    reply_started = Signal(object)
    prefill_progress = Signal(int, object)
    kv_changed = Signal(int, object)
    kv_refused = Signal(object)
    reply_finished = Signal(object)
    reply_unsaved = Signal(object)
    reply_refused = Signal(int, int, object)
    load_refused = Signal(object, object)
    guard_acted = Signal(object)
    pages_changed = Signal(int, object)
    rebuild_progress = Signal(int, object)
    failed = Signal(object)

    def __init__(self, paths: AppPaths, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.state = EngineState.EMPTY
        self.loaded: LoadedModel | None = None
        self._worker = EngineWorker(paths, self)
        self.guard = self._worker.guard
        self._worker.state_changed.connect(self._take_state)
        self._worker.model_changed.connect(self._take_model)
        self._worker.load_progress.connect(self.load_progress)
        self._worker.reply_started.connect(self.reply_started)
        self._worker.prefill_progress.connect(self.prefill_progress)
        self._worker.kv_changed.connect(self.kv_changed)
        self._worker.kv_refused.connect(self.kv_refused)
        self._worker.reply_unsaved.connect(self.reply_unsaved)
        self._worker.reply_finished.connect(self.reply_finished)
        self._worker.reply_refused.connect(self.reply_refused)
        self._worker.load_refused.connect(self.load_refused)
        self._worker.guard_acted.connect(self.guard_acted)
        self._worker.pages_changed.connect(self.pages_changed)
        self._worker.rebuild_progress.connect(self.rebuild_progress)
        self._worker.failed.connect(self.failed)

    def start(self) -> None:
        """Start the thread."""
        self._worker.start()

    def load(self, path: Path, kv: KVSpec, max_context: int | None = None, anyway: bool = False) -> None:
        """Load the model at `path` in place of the present one; what runs now is stopped first.

        Where its weights and a context of `max_context` do not fit, that is refused, unless `anyway`.
        """
        self._worker.cancel_all()
        self._worker.put(
            Priority.USER, lambda cancel: self._worker.load(path, kv, max_context, anyway, cancel)
        )

    def unload(self) -> None:
        """Eject the model; what runs now is stopped first."""
        self._worker.cancel_all()
        self._worker.put(Priority.CONTROL, lambda cancel: self._worker.unload(), is_stoppable=False)

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
        self._worker.want_kv(kv)

    def forget(self, conversation_id: int) -> None:
        """Give the memory of a conversation back that is no more, when what runs now is done."""
        self._worker.put(
            Priority.CONTROL, lambda cancel: self._worker.forget(conversation_id), is_stoppable=False
        )

    def relieve(self) -> None:
        """Have the guard's ladder carried out, when it has moved; a reply that runs does that by itself."""
        self._worker.want_relief()

    def go_on(self) -> None:
        """Let a reply go on that waits for memory."""
        self.guard.go_on()

    def set_limits(self, limits: MemoryLimits) -> None:
        """Set the memory that may be taken, from the next request on."""
        self._worker.limits = limits
        if self.loaded is not None:
            self.loaded = dataclasses.replace(self.loaded, limits=limits)

    def watch_pages(self, watches: bool) -> None:
        """Have `pages_changed` told now and when they change, or no longer."""
        self._worker.watch_pages(watches)

    def pin(self, conversation_id: int, page_number: int, pinned: bool) -> None:
        """Let a page stay a tier higher, or no longer, when what runs now is done."""
        self._worker.put(
            Priority.CONTROL,
            lambda cancel: self._worker.pin(conversation_id, page_number, pinned),
            is_stoppable=False,
        )

    def rebuild(self, conversation_id: int) -> None:
        """Read a conversation again exactly, if the engine holds it; `stop` ends it."""
        self._worker.put(Priority.USER, lambda cancel: self._worker.rebuild(conversation_id, cancel))

    def stop(self) -> None:
        """Stop what loads or replies, or waits to; it ends within one step of its work."""
        self._worker.stop()

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
