"""The window: three panes, the bar above, and what ties them together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QFileDialog, QMainWindow, QSplitter

from app.documents.formats import file_filter
from app.paths import AppPaths
from app.store.conversations import ConversationStore
from app.store.prefixes.service import PrefixService
from ui.about import show_about
from ui.centre_pane import CentrePane
from ui.chat.drop import DropOverlay
from ui.chat_controller import ChatController
from ui.closing import Ending
from ui.conversations.deletion import ConversationDeletion
from ui.conversations.pane import ConversationPane
from ui.documents.evidence import AnswerEvidence
from ui.documents.reader import DocumentReader
from ui.documents.side_pane import SidePane
from ui.engine_notices import EngineNotices
from ui.engine_thread import EngineThread
from ui.engine_worker import EngineState
from ui.guard_notices import GuardNotices
from ui.inspector.pane import InspectorPane
from ui.inspector_controller import InspectorController
from ui.last_save import purge, save_or_ask
from ui.live_precision import LivePrecision
from ui.look import Look
from ui.menus import Commands, build_menus
from ui.models.controller import ModelController
from ui.notifications import Notifications
from ui.outside import Outside
from ui.pane_folding import PaneFolding
from ui.prefixes.controller import PrefixController
from ui.profiles.current import CurrentProfile
from ui.profiles.menu import ProfileMenu
from ui.stored_settings import StoredSettings
from ui.theme import app_icon
from ui.window_geometry import WindowGeometry
from ui.window_title import WindowTitle

_MIN_SIZE = QSize(440, 480)
"""Room for the conversation alone, with a refusal; the side panes fold away."""


class MainWindow(QMainWindow):
    """Owns the widgets and controllers of one data folder.

    Attributes:
        chat: the open conversation and all that is sent in it.
        deletion: deletes conversations and brings them back.
        models: what is loaded and downloaded.
        profile: the profile of the open conversation.
        precision: the KV precision on its way to the engine, and what the engine holds.
        panels: what the inspector shows.
        reader: shows the text of documents in the inspector's place.
        prefixes: shows what is kept on disk.

    Signals:
        closing: the window is about to save and end everything.
    """

    closing = Signal()

    def __init__(
        self,
        paths: AppPaths,
        store: ConversationStore,
        settings: StoredSettings,
        notifications: Notifications,
        engine: EngineThread,
        stored: PrefixService,
    ) -> None:
        super().__init__()
        self._paths = paths
        self._store = store
        self._settings = settings
        self._notifications = notifications
        self._engine = engine
        self._stored = stored
        self._ending = Ending(self, engine)
        self._outside = Outside(notifications, self)
        self._look = Look(settings, self)
        engine.set_limits(settings.value.memory, settings.value.prefixes)
        # First, as all that follows asks the engine what fits.
        settings.changed.connect(lambda changed: engine.set_limits(changed.memory, changed.prefixes))
        self.profile = CurrentProfile(store, settings, self)
        self.models = ModelController(paths, engine, settings, self.profile, notifications, self)
        self.centre = CentrePane(self.models.downloads)
        self.view, self.composer = self.centre.view, self.centre.composer
        self.top_bar, self.busy_bar = self.centre.top_bar, self.centre.busy_bar
        self.top_bar.profile_button.connect_to(self.profile)
        self.conversations = ConversationPane(store)
        self.inspector = InspectorPane(settings, self.profile)
        self.side = SidePane(self.inspector)
        self.chat = ChatController(
            store, engine, settings, self.profile, notifications, self.view, self.composer, self
        )
        self.deletion = ConversationDeletion(self.conversations, self.chat.switcher, self)
        self.precision = LivePrecision(self.profile, engine, self)
        self.panels = InspectorController(
            self.inspector, self.chat, self.precision, engine, self.profile, settings, notifications, self
        )
        self.prefixes = PrefixController(stored, store, settings, self)
        AnswerEvidence(store, self.chat, self.view)
        WindowTitle(store, self.chat, self)
        GuardNotices(engine, notifications, self.chat.stream.stop, self)
        EngineNotices(engine, notifications, self)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._lay_out()
        self.chat.documents.take_drops(DropOverlay(self))
        self._menus = build_menus(self, self._commands())
        self._connect()
        self._geometry = WindowGeometry(paths.home / "window.ini", self, self._splitter)
        self.inspector.tabs.show_panel(self._geometry.restore())
        self._folding = PaneFolding(self, self._splitter)
        self._folding.add(self.conversations, self.top_bar.left_toggle, self._menus.left_pane)
        self._folding.add(self.side, self.top_bar.right_toggle, self._menus.right_pane)
        self.reader = DocumentReader(store, self.chat, self.view, self.side, self._folding, notifications)
        self._look.tick(self._menus.looks)
        self.chat.switcher.open_newest()
        self._refresh()

    def start(self, files: Sequence[Path]) -> None:
        """Load the last model and attach the files that the program was started with."""
        self.composer.setFocus()
        self._engine.start()
        self.panels.watch.start()
        self.models.load_last()
        if files:
            self.chat.documents.add_files(files)

    def activate(self, files: Sequence[Path]) -> None:
        """Come to the front for a second start, and attach its files."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
        if files:
            self.chat.documents.add_files(files)

    def end(self) -> None:
        """Close the window; while that is saving, leave at once."""
        if not self._ending.leave():
            self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop the engine, save, and let the window go; ask about words that cannot be saved."""
        self.closing.emit()
        self.reader.close()
        self._geometry.save(self._folding.folded, self.inspector.tabs.current)
        self.inspector.chat.commit()
        self._settings.save()
        try:
            self.chat.shut_down()
        finally:
            self._ending.end_engine()
            self.panels.watch.stop()
        save_or_ask(self.chat.save, self)
        purge(self._store)
        self._stored.close()
        event.accept()

    def _lay_out(self) -> None:
        self.setWindowTitle("Octavo")
        self.setWindowIcon(app_icon())
        self.setMinimumSize(_MIN_SIZE)
        for place, pane in enumerate((self.conversations, self.centre, self.side)):
            self._splitter.addWidget(pane)
            self._splitter.setStretchFactor(place, int(pane is self.centre))
        self._splitter.setHandleWidth(1)
        self._splitter.setChildrenCollapsible(False)
        self.conversations.setMinimumWidth(200)
        self.setCentralWidget(self._splitter)

    def _commands(self) -> Commands:
        return Commands(
            new=self.chat.switcher.new,
            attach=self._attach,
            search=self._search,
            rename=self._rename,
            pin=self.conversations.toggle_pin_current,
            delete=self.deletion.delete_open,
            undo_delete=self.deletion.undo,
            quit=self.end,
            choose_model=self.models.choose,
            eject=self.models.eject,
            stop=self._stop,
            prefix_cache=self.prefixes.show,
            settings=self._go_to_settings,
            set_look=self._look.choose,
            profiles=ProfileMenu(self.profile, "&Profile", self),
            open_logs=lambda: self._outside.open_folder(self._paths.logs),
            open_data=lambda: self._outside.open_folder(self._paths.home),
            about=lambda: show_about(self),
        )

    def _connect(self) -> None:
        self._notifications.posted.connect(self.centre.notification_bar.show_notice)
        self._notifications.withdrawn.connect(self.centre.notification_bar.withdraw)
        self._settings.save_failed.connect(
            lambda error: self._notifications.error("The settings could not be saved", error)
        )
        self.conversations.opened.connect(self.chat.switcher.open)
        self.conversations.chosen.connect(self.composer.setFocus)
        self.prefixes.open_requested.connect(self.chat.switcher.open)
        self.conversations.new_requested.connect(self.chat.switcher.new)
        self.deletion.changed.connect(self._refresh)
        self.chat.list_changed.connect(self.conversations.refresh)
        self.chat.opened.connect(self._on_opened)
        self.chat.changed.connect(self._refresh)
        self.composer.attach_requested.connect(self._attach)
        self.busy_bar.stop_requested.connect(self.chat.stream.stop)
        self.busy_bar.show_requested.connect(self.chat.switcher.open_busy)
        self.top_bar.model_clicked.connect(self.models.choose)
        self.top_bar.eject_clicked.connect(self.models.eject)
        self.top_bar.stop_clicked.connect(self.models.stop_loading)
        self.top_bar.theme_clicked.connect(self._look.choose_next)
        self.centre.welcome.choose_requested.connect(self.models.choose)
        self.models.library_changed.connect(self._refresh)
        self.models.connect_refusal(self.centre.load_refusal)
        self.chat.refused.smaller_model_wanted.connect(self.models.choose_smaller)
        self.view.link_activated.connect(self._outside.open_link)
        self.view.ledger_requested.connect(self._show_ledger)
        self._engine.load_progress.connect(self.top_bar.set_progress)
        self._engine.state_changed.connect(self._on_engine_state)
        self._engine.model_loaded.connect(self._refresh)
        self._engine.model_unloaded.connect(self._refresh)

    def _refresh(self) -> None:
        """Bring the surroundings in line with the conversation and the engine."""
        loaded = self._engine.loaded
        loading = self._engine.state is EngineState.LOADING
        if not loading:
            self.top_bar.set_model(loaded)
        self.panels.refresh()
        self.centre.show_conversation(bool(self.chat.session.messages))
        if not self.chat.session.messages:
            self.centre.welcome.set_state(
                has_models=loaded is not None or self.models.has_models,
                has_model=loaded is not None,
                is_loading=loading,
            )
        busy_id = self.chat.stream.conversation_id
        self.conversations.set_writing(busy_id)
        self._menus.undo_delete.setEnabled(self.chat.switcher.can_undo_delete)
        self._menus.eject.setEnabled(loaded is not None)
        works = self._engine.state in (EngineState.REBUILDING, EngineState.SUMMARIZING)
        self._menus.stop.setEnabled(loading or works or busy_id is not None)
        self.busy_bar.show_for(self.chat.switcher.busy_elsewhere)

    def _on_opened(self) -> None:
        conversation_id = self.chat.session.conversation_id
        assert conversation_id is not None
        self.conversations.set_current(conversation_id)

    def _on_engine_state(self, state: EngineState) -> None:
        if state is EngineState.LOADING:
            self.top_bar.set_progress(None)
        self._refresh()

    def _stop(self) -> None:
        self.models.stop_loading()
        self.chat.stream.stop()
        self._engine.stop()  # what is read again or summarized

    def _attach(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Attach documents", "", file_filter())
        if names:
            self.chat.documents.add_files([Path(name) for name in names])

    def _search(self) -> None:
        self.top_bar.left_toggle.setChecked(True)
        self.conversations.focus_search()

    def _rename(self) -> None:
        self.top_bar.left_toggle.setChecked(True)
        self.conversations.rename_current()

    def _show_ledger(self, key: str) -> None:
        self._show_inspector()
        self.inspector.go_to_ledger(key)

    def _go_to_settings(self) -> None:
        self._show_inspector()
        self.inspector.go_to_chat_settings()

    def _show_inspector(self) -> None:
        self.reader.close()
        self.top_bar.right_toggle.setChecked(True)
