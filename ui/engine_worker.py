"""The one thread that owns MLX: it loads, generates and saves, one request at a time."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from PySide6.QtCore import QObject, QThread, Signal

from app.ledger.records import ContextChange
from app.paths import AppPaths
from app.reply_settings import ReplySettings
from app.settings import DEFAULT_KV
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from app.store.records import MessageState
from engine.backend import start_backend
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from engine.guard import Guard
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from ui.document_work import DocumentsAhead
from ui.engine_signals import EngineSignals
from ui.engine_state import EngineState, Failure, failure_of
from ui.engine_works import EngineWorks, ThreadLinks
from ui.held_telling import HeldTelling
from ui.reply_work import GatheredText
from ui.request_queue import Priority, Request, RequestQueue, Run

__all__ = ["EngineState", "EngineWorker", "Failure"]

log = logging.getLogger(__name__)


class EngineWorker(QThread):
    """The engine's thread: takes requests from a queue, one at a time.

    Attributes:
        guard: says how short memory is; any thread may use it.
        wanted_kv: the precision that the user wants now, set by the window's thread.
        limits: the memory that the user allows, set by the window's thread.
        open_id: the conversation that is open, None before one is.
        told: what is told, beside the state and the model.

    Signals:
        state_changed(EngineState): the engine began or ended something.
        model_changed(LoadedModel | None): the model that is there now.
    """

    state_changed = Signal(object)
    model_changed = Signal(object)

    def __init__(self, paths: AppPaths, stored: PrefixService | None, parent: QObject) -> None:
        super().__init__(parent)
        self.setObjectName("engine")
        self.told = EngineSignals(self)
        self.guard = Guard()
        self.wanted_kv = DEFAULT_KV
        self.limits = MemoryLimits()
        self.open_id: int | None = None
        self._paths = paths
        self._stored = stored
        self._leaving = CancelToken()
        self._requests = RequestQueue()
        self._lock = threading.Lock()
        self._kv_waits = False
        self._relief_waits = False
        self._held = HeldTelling(self.told)
        self._text = GatheredText()
        self._works: EngineWorks

    # Called from the window's thread.

    def put(self, priority: Priority, run: Run | None, *, is_stoppable: bool = True) -> None:
        """Queue a request, which `stop` ends or only `cancel_all`; None ends the thread."""
        self._requests.put(priority, run, is_stoppable=is_stoppable)

    def opened(self, conversation_id: int) -> None:
        """Have a conversation loaded that was opened, and saved what was read of others."""
        self.open_id = conversation_id
        self.put(Priority.CONTROL, lambda cancel: self._works.prefixes.opened(), is_stoppable=False)

    def _tell_soon(self) -> None:
        """Have told what is watched from now on; what is done in the background does so by itself."""
        self._requests.put(
            Priority.CONTROL, lambda cancel: self._held.changed(), is_stoppable=False, can_wait=True
        )

    def want_kv(self, kv: KVSpec) -> None:
        """Have the cache brought to a precision; of several wishes the last one counts."""
        self.wanted_kv = kv
        with self._lock:
            waits, self._kv_waits = self._kv_waits, True
        if not waits:
            self.put(Priority.CONTROL, self.apply_kv, is_stoppable=False)

    def want_relief(self) -> None:
        """Have the guard's ladder carried out when nothing runs; a reply does that itself."""
        with self._lock:
            waits, self._relief_waits = self._relief_waits, True
        if not waits:
            self.put(Priority.CONTROL, self.relieve, is_stoppable=False)

    def watch_pages(self, watches: bool) -> None:
        """Have the pages told when they change, or no longer."""
        self._held.watch_pages(watches)
        if watches:
            self._tell_soon()

    def watch_context(self, watches: bool) -> None:
        """Have told what the parts of the context take when that changes, or no longer."""
        self._held.watch_context(watches)
        if watches:
            self._tell_soon()

    def stop(self) -> None:
        """Cancel what the user can stop, whether it runs or waits."""
        self._requests.stop()

    def cancel_all(self) -> None:
        """Cancel the request that runs and all that wait."""
        with self._lock:
            self._kv_waits = self._relief_waits = False
        self._requests.cancel_all()

    def shutdown(self) -> None:
        """Cancel everything and end the thread."""
        self.cancel_all()
        self.put(Priority.CONTROL, None)

    def leave(self) -> None:
        """Let the thread end without saving the rest of what was read."""
        self._leaving.cancel()

    def take_text(self) -> str:
        """Return the text gathered since the last call."""
        return self._text.take()

    # Everything below runs on the engine's thread.

    def run(self) -> None:
        """Serve requests until the one that ends the thread."""
        try:
            self._works = self._made_works()
        except Exception as error:
            log.exception("The engine could not start.")
            self.told.failed.emit(failure_of(error))
            return
        while (request := self._next()).run is not None:
            self._serve(request, request.run)
        self._works.models.end(self._leaving)
        self._works.store.close()

    def _made_works(self) -> EngineWorks:
        engine = Engine(
            start_backend(),
            limits=self.limits,
            guard=self.guard,
            spill_folder=self._paths.spill,
            prefixes=self._stored,
        )
        store = ConversationStore.open(self._paths.conversations_db)
        links = ThreadLinks(
            self.told, self._text, self._requests, lambda: self.wanted_kv, lambda: self.open_id
        )
        return EngineWorks(engine, store, self._stored, self._held, links)

    def _next(self) -> Request:
        """Return the next request; what is due meanwhile does not wait for it."""
        while True:
            self._works.quiet.ask_when_due()
            dues = (self._held.due_in_s, self._works.quiet.due_in_s)
            request = self._requests.get(min((due for due in dues if due is not None), default=None))
            if request is not None:
                return request
            self._held.tell_due()

    def _serve(self, request: Request, run: Run) -> None:
        try:
            request.cancel.check()
            self._works.engine.limits = self.limits
            run(request.cancel)
        except Cancelled:
            log.info("A request was stopped.")
        except Exception as error:
            log.exception("A request failed.")
            self.told.failed.emit(failure_of(error))
        finally:
            self._requests.done(request)
            self._works.speeds.learn()
            if request.priority is Priority.BACKGROUND:
                self._works.quiet.ended()
            else:
                self.state_changed.emit(EngineState.READY if self._works.engine.loaded else EngineState.EMPTY)

    def load(
        self, path: Path, kv: KVSpec, max_context: int | None, anyway: bool, cancel: CancelToken
    ) -> None:
        """Load a model and tell of it, of its absence where that fails, or that it does not fit."""
        self.state_changed.emit(EngineState.LOADING)
        self._works.context.forget()
        try:
            self._works.models.load(path, kv, max_context, anyway, cancel)
        finally:
            self._works.prefixes.loaded()
            self._works.speeds.loaded()
            self.model_changed.emit(self._works.engine.loaded)

    def unload(self, cancel: CancelToken) -> None:
        """Eject the model."""
        self._works.context.forget()
        self._works.models.unload(cancel)
        self.model_changed.emit(None)

    def apply_kv(self, cancel: CancelToken) -> None:
        """Bring the cache to the precision that is wanted now; after a reply that is done already."""
        with self._lock:
            self._kv_waits = False
        changed = self._works.engine.apply_kv(self.wanted_kv, cancel)
        if changed is not None:
            self._works.prefixes.used()
            self._held.take(self._held.conversation_id, changed)

    def relieve(self, cancel: CancelToken) -> None:
        """Carry out the guard's ladder between replies."""
        with self._lock:
            self._relief_waits = False
        actions = self._works.engine.relieve(cancel)
        for action in actions:
            self.told.guard_acted.emit(action)
        if actions:
            self._held.tell()

    def forget(self, conversation_id: int) -> None:
        """Give the memory of a conversation back."""
        self._works.engine.forget(conversation_id)
        self._works.context.forget(conversation_id)
        if conversation_id == self._held.conversation_id:
            self._held.tell()

    def read_ahead(self, ahead: DocumentsAhead | None) -> None:
        """Have the documents of the next message read between all else, or no longer."""
        self._works.documents.want(ahead)

    def pin(self, conversation_id: int, page_number: int, pinned: bool) -> None:
        """Pin a page, if the conversation is the one in hand."""
        if conversation_id == self._held.conversation_id:
            self._works.engine.pin(page_number, pinned)
            self._works.prefixes.used()
            self._held.changed()

    def rebuild(self, conversation_id: int, settings: ReplySettings, cancel: CancelToken) -> None:
        """Read a conversation again exactly, if it is the one in hand, and tell of the progress."""
        if conversation_id == self._held.conversation_id:
            self.state_changed.emit(EngineState.REBUILDING)
            self._works.prefixes.used()
            self._works.context.rebuild(conversation_id, settings, cancel)

    def summarize(
        self,
        conversation_id: int,
        leaf_id: int,
        keys: tuple[str, ...],
        settings: ReplySettings,
        cancel: CancelToken,
    ) -> None:
        """Write a summary that the user asks for."""
        self.state_changed.emit(EngineState.SUMMARIZING)
        self._works.prefixes.used()
        self._works.context.summarize(conversation_id, leaf_id, keys, settings, cancel)

    def settle(self, conversation_id: int, settings: ReplySettings) -> None:
        """Give the memory back of what the model no longer reads."""
        self._works.context.settle(conversation_id, settings)
        self._works.prefixes.used()

    def tell_reading_cost(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, change: ContextChange
    ) -> None:
        """Tell what has to be read for a change of a conversation's context."""
        self._works.context.tell_reading_cost(conversation_id, leaf_id, settings, change)

    def reply(self, conversation_id: int, leaf_id: int, settings: ReplySettings, cancel: CancelToken) -> None:
        """Write a reply and tell of its progress, or that it does not fit."""
        self.state_changed.emit(EngineState.GENERATING)
        try:
            message = self._works.replies.reply(conversation_id, leaf_id, settings, cancel)
        finally:
            self._works.prefixes.used()
        if message is not None and message.state is not MessageState.FAILED:
            self._works.context.after_reply(conversation_id, settings)
