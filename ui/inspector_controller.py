"""What happens between the panels of the right pane, the engine, the memory monitor and the settings."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.settings import Settings
from engine.kv.page_map import PageMap
from engine.memory_limits import MemoryLimits
from ui.chat_controller import ChatController
from ui.engine_thread import EngineThread
from ui.inspector.pane import InspectorPane
from ui.ledger_controller import LedgerController
from ui.live_precision import LivePrecision
from ui.memory_watch import MemoryWatch
from ui.notifications import Notifications
from ui.profiles.current import CurrentProfile
from ui.stored_settings import StoredSettings

_EXPORT = "export"


class InspectorController(QObject):
    """Gives the panels what they show, and takes what is set in them to where it belongs.

    Attributes:
        watch: the memory monitor and its history.
    """

    def __init__(
        self,
        pane: InspectorPane,
        chat: ChatController,
        precision: LivePrecision,
        engine: EngineThread,
        profile: CurrentProfile,
        settings: StoredSettings,
        notifications: Notifications,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._pane = pane
        self._precision = precision
        self._engine = engine
        self._settings = settings
        self._notifications = notifications
        self._chat = chat
        self._session = chat.session
        self._pages: tuple[int, PageMap | None] = (0, None)
        self.watch = MemoryWatch(engine.guard, settings.value.memory, self)
        pane.memory.set_watch(self.watch)
        self._take_limits(settings.value)
        self._connect_memory()
        self._connect_precision()
        self._connect_pages()
        LedgerController(pane.context, chat, engine, precision, profile, settings, self)

    def refresh(self) -> None:
        """Show the loaded model and what is held of the open conversation."""
        self._pane.set_model(self._engine.loaded)
        self._show_held()
        self._show_pages()

    def _connect_memory(self) -> None:
        memory = self._pane.memory
        memory.limits_changed.connect(self._on_limits)
        memory.go_on_requested.connect(self._engine.go_on)
        memory.failed.connect(self._on_export_failed)
        memory.export.written.connect(lambda: self._notifications.withdraw(_EXPORT))
        self._settings.changed.connect(self._take_limits)
        self._engine.guard_acted.connect(self.watch.take_action)
        self.watch.height_changed.connect(self._engine.relieve)

    def _connect_precision(self) -> None:
        self._precision.changed.connect(self._show_held)
        self._pane.precision.grabbed.connect(self._precision.set_grabbed)
        for panel in (self._pane.precision, self._pane.context):
            panel.rebuild_requested.connect(self._rebuild)
            panel.rebuild_stopped.connect(self._precision.stop_rebuild)

    def _rebuild(self) -> None:
        self._precision.rebuild(self._chat.reply_settings())

    def _connect_pages(self) -> None:
        self._engine.pages_changed.connect(self._on_pages)
        self._engine.model_loaded.connect(self._forget_pages)
        self._engine.model_unloaded.connect(self._forget_pages)
        self._pane.pages.watching_changed.connect(self._engine.watch_pages)
        self._pane.pages.pin_requested.connect(self._on_pin)

    def _take_limits(self, settings: Settings) -> None:
        self.watch.limits = settings.memory
        self._pane.memory.set_limits(settings.memory)

    def _on_limits(self, limits: MemoryLimits) -> None:
        self._settings.update(memory=limits)

    def _on_export_failed(self, error: Exception) -> None:
        self._notifications.error("The figures could not be saved", error, topic=_EXPORT)

    def _show_held(self) -> None:
        held = self._precision.held
        is_open = held is not None and held.conversation_id == self._session.conversation_id
        self._pane.set_held(held, is_open)
        self._pane.precision.set_reread(self._precision.reread)

    def _on_pages(self, conversation_id: int, pages: PageMap | None) -> None:
        self._pages = conversation_id, pages
        self._show_pages()

    def _forget_pages(self) -> None:
        """Show nothing of a model that is gone, before the engine tells what it holds now."""
        self._on_pages(0, None)

    def _show_pages(self) -> None:
        conversation_id, pages = self._pages
        self._pane.pages.set_pages(pages, conversation_id == self._session.conversation_id)

    def _on_pin(self, page_number: int, pinned: bool) -> None:
        conversation_id, _ = self._pages
        self._engine.pin(conversation_id, page_number, pinned)
