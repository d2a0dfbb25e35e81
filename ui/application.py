"""Starting the window and ending it."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from app.logs import set_up_logging
from app.paths import AppPaths
from app.settings import load_settings
from app.store.conversations import ConversationStore
from app.store.db import open_store
from engine.backend import start_backend
from engine.errors import OctavoError
from ui.background import BackgroundJob
from ui.last_save import purge
from ui.notifications import Level, Notice, Notifications
from ui.single_instance import Claim, DataFolderError, SingleInstance
from ui.stored_settings import StoredSettings
from ui.theme import app_icon

if TYPE_CHECKING:
    from ui.main_window import MainWindow

log = logging.getLogger(__name__)
_JOBS_MS = 3000
_SIGNAL_MS = 250
_PREFIXES = "prefixes"


def main(paths: AppPaths, files: Sequence[Path] = ()) -> int:
    """Open the window on a data folder, with `files` attached; return the exit status."""
    app = QApplication(sys.argv[:1])
    app.setApplicationName("Octavo")
    app.setApplicationDisplayName("Octavo")
    app.setDesktopFileName("octavo")
    app.setWindowIcon(app_icon())
    try:
        instance = SingleInstance(paths.home)
        claim = instance.claim(files)
    except DataFolderError as error:
        return _refuse(str(error))
    if claim is Claim.PASSED_ON:
        return 0
    if claim is Claim.NO_ANSWER:
        return _refuse("Octavo is running already but does not answer. End it, then start it again.")
    set_up_logging(paths, verbose=False)
    try:
        return _run(app, paths, instance, files)
    finally:
        instance.release()


def _run(app: QApplication, paths: AppPaths, instance: SingleInstance, files: Sequence[Path]) -> int:
    notifications = Notifications()
    try:
        window, store = open_window(paths, notifications)
    except OctavoError as error:
        log.exception("the conversations could not be opened")
        return _refuse(str(error))
    notifications.install_hooks()
    instance.activated.connect(window.activate)
    window.closing.connect(instance.stop_listening)
    window.show()
    window.start([file.absolute() for file in files])
    ticker = _close_on_signals(window)
    status = app.exec()
    ticker.stop()
    BackgroundJob.cancel_all(_JOBS_MS)
    notifications.remove_hooks()
    store.close()
    return status


def open_window(paths: AppPaths, notifications: Notifications) -> tuple[MainWindow, ConversationStore]:
    """Open what the data folder holds, repair what an earlier end left behind, and make the window.

    Raises:
        StoreError: the conversations cannot be opened.
    """
    # The window's modules import MLX, which must find its backend prepared; a second start needs neither.
    start_backend()
    from app.store.prefixes.service import PrefixService
    from ui.engine_thread import EngineThread
    from ui.main_window import MainWindow

    store, report = open_store(paths.conversations_db)
    store.mark_interrupted()
    purge(store)
    settings, settings_message = load_settings(paths.settings_file)

    def tell(problem: str) -> None:
        notifications.post(Notice(Level.WARNING, "The prefix cache", problem, topic=_PREFIXES))

    prefixes = PrefixService(paths.prefixes_db, settings.prefixes, tell)
    prefixes.keep_only([conversation.id for conversation in store.conversations()])
    stored = StoredSettings(paths.settings_file, settings)
    window = MainWindow(paths, store, stored, notifications, EngineThread(paths, prefixes), prefixes)
    if settings_message:
        notifications.warning("Not all settings could be used", settings_message)
    if report.message:
        notifications.warning("The conversations were damaged", report.message)
    return window, store


def _close_on_signals(window: MainWindow) -> QTimer:
    """Close the window, and so save, on Ctrl+C and on a request of the system to end."""

    def close(_number: int, _frame: FrameType | None) -> None:
        window.end()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, close)
    # Python runs its signal handlers between bytecodes only; an idle event loop executes none.
    ticker = QTimer(window)
    ticker.timeout.connect(window.isVisible)
    ticker.start(_SIGNAL_MS)
    return ticker


def _refuse(sentence: str) -> int:
    box = QMessageBox(QMessageBox.Icon.Warning, "Octavo", sentence)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.exec()
    return 1
