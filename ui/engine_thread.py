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

from app.ledger.records import ContextChange
from app.paths import AppPaths
from app.reply_settings import ReplySettings
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.engine import LoadedModel
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from ui.document_work import DocumentsAhead
from ui.engine_signals import EngineSignals
from ui.engine_worker import EngineState, EngineWorker
from ui.request_queue import Priority


class EngineThread(EngineSignals):
    """Sends requests to the engine and tells what came of them.

    Attributes:
        state: what the engine is doing.
        loaded: the model that is there, None without one.
        background: a few words on what is done between replies, empty when nothing is.
        guard: says how short memory is; to be given samples by whoever watches it.

    Signals:
        state_changed(EngineState): the engine began or ended something.
        model_loaded(LoadedModel): a model is ready.
        model_unloaded(): there is no model now, because it was ejected or loading was stopped or failed.
        ended: the thread has ended.
    """

    state_changed = Signal(object)
    model_loaded = Signal(object)
    model_unloaded = Signal()
    ended = Signal()

    def __init__(
        self, paths: AppPaths, stored: PrefixService | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.state = EngineState.EMPTY
        self.loaded: LoadedModel | None = None
        self.background = ""
        self._stored = stored
        self._worker = EngineWorker(paths, stored, self)
        self._worker.finished.connect(self.ended)
        self.guard = self._worker.guard
        self._worker.state_changed.connect(self._take_state)
        self._worker.model_changed.connect(self._take_model)
        self._worker.told.background_changed.connect(self._take_background)
        self.relay(self._worker.told)

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
        self._worker.put(Priority.CONTROL, self._worker.unload, is_stoppable=False)

    def reply(self, conversation_id: int, leaf_id: int, settings: ReplySettings) -> None:
        """Answer the message `leaf_id`; what is read may be kept, also where that was deleted before."""
        if self._stored is not None:
            self._stored.allow(conversation_id)
        self._worker.wanted_kv = settings.kv
        self._worker.put(
            Priority.USER, lambda cancel: self._worker.reply(conversation_id, leaf_id, settings, cancel)
        )

    def set_kv(self, kv: KVSpec) -> None:
        """Change the precision of the conversation that is held.

        A reply that runs takes it over with its next chunk or token. Pages of another size wait for the next.
        """
        self._worker.want_kv(kv)

    def opened(self, conversation_id: int) -> None:
        """Load what is kept on disk of a conversation that was opened, as soon as nothing else is done."""
        self._worker.opened(conversation_id)

    def read_ahead(self, ahead: DocumentsAhead | None) -> None:
        """Read the documents of the next message whenever nothing else is done, or no longer with None.

        `document_progress` tells how far that is.
        """
        self._worker.put(Priority.CONTROL, lambda cancel: self._worker.read_ahead(ahead), is_stoppable=False)

    def restored(self, conversation_id: int) -> None:
        """Let a conversation be kept on disk again, whose deletion was undone."""
        if self._stored is not None:
            self._stored.allow(conversation_id)

    def forget(self, conversation_id: int) -> None:
        """Delete what is kept on disk of a conversation that is no more; its memory when this is free."""
        if self._stored is not None:
            self._stored.delete(conversation_id)
        self._worker.put(
            Priority.CONTROL, lambda cancel: self._worker.forget(conversation_id), is_stoppable=False
        )

    def relieve(self) -> None:
        """Have the guard's ladder carried out, when it has moved; a reply that runs does that by itself."""
        self._worker.want_relief()

    def go_on(self) -> None:
        """Let a reply go on that waits for memory."""
        self.guard.go_on()

    def set_limits(self, limits: MemoryLimits, prefixes: PrefixSettings) -> None:
        """Set the memory that may be taken, from the next request on, and what may be kept on disk."""
        if self._stored is not None and self._stored.settings != prefixes:
            self._stored.settings = prefixes
        self._worker.limits = limits
        if self.loaded is not None:
            self.loaded = dataclasses.replace(self.loaded, limits=limits)

    def watch_pages(self, watches: bool) -> None:
        """Have `pages_changed` told now and when they change, or no longer."""
        self._worker.watch_pages(watches)

    def watch_context(self, watches: bool) -> None:
        """Have `context_usage_changed` told now and when it changes, or no longer."""
        self._worker.watch_context(watches)

    def summarize(
        self, conversation_id: int, leaf_id: int, keys: tuple[str, ...], settings: ReplySettings
    ) -> None:
        """Replace turns in a row, or a document, named by `keys` of them, by one summary; `stop` ends it.

        `summary_progress` tells how far it is, `ledger_changed` that it is there.
        """
        self._worker.put(
            Priority.USER,
            lambda cancel: self._worker.summarize(conversation_id, leaf_id, keys, settings, cancel),
        )

    def settle(self, conversation_id: int, settings: ReplySettings) -> None:
        """Give the memory back of what the model no longer reads, when what runs now is done."""
        self._worker.put(
            Priority.CONTROL,
            lambda cancel: self._worker.settle(conversation_id, settings),
            is_stoppable=False,
        )

    def ask_reading_cost(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, change: ContextChange
    ) -> None:
        """Have `reading_cost_told` tell what has to be read for a change, when what runs now is done."""
        self._worker.put(
            Priority.CONTROL,
            lambda cancel: self._worker.tell_reading_cost(conversation_id, leaf_id, settings, change),
            is_stoppable=False,
        )

    def pin(self, conversation_id: int, page_number: int, pinned: bool) -> None:
        """Let a page stay a tier higher, or no longer, when what runs now is done."""
        self._worker.put(
            Priority.CONTROL,
            lambda cancel: self._worker.pin(conversation_id, page_number, pinned),
            is_stoppable=False,
        )

    def rebuild(self, conversation_id: int, settings: ReplySettings) -> None:
        """Read a conversation again exactly, if the engine holds it; `stop` ends it."""
        self._worker.put(
            Priority.USER, lambda cancel: self._worker.rebuild(conversation_id, settings, cancel)
        )

    def stop(self) -> None:
        """Stop what loads or replies, or waits to; it ends within one step of its work."""
        self._worker.stop()

    def take_text(self) -> str:
        """Return the text of the running reply that was decoded since the last call."""
        return self._worker.take_text()

    def begin_end(self) -> None:
        """Stop everything, save what there is of a reply and what was read, and let the thread end then."""
        self._worker.shutdown()

    def has_ended(self, timeout_s: float) -> bool:
        """Wait up to so many seconds for the end of the thread; return whether that has come."""
        return self._worker.wait(round(timeout_s * 1000))

    def leave(self) -> None:
        """Let the thread end at once, without saving the rest of what was read."""
        self._worker.leave()

    def shutdown(self) -> None:
        """Do what `begin_end` does, wait for it, and hand out the thread's last signals."""
        if not self._worker.isFinished():
            self.begin_end()
        self._worker.wait()
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)

    def _take_state(self, state: EngineState) -> None:
        self.state = state
        self.state_changed.emit(state)

    def _take_background(self, words: str) -> None:
        self.background = words

    def _take_model(self, loaded: LoadedModel | None) -> None:
        self.loaded = loaded
        if loaded is None:
            self.model_unloaded.emit()
        else:
            self.model_loaded.emit(loaded)
