"""Whole windows on real data folders."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.paths import AppPaths
from app.profiles import CUSTOM
from app.settings import DEFAULT_CUSTOM, DEFAULT_KV, Settings, save_settings
from app.store.conversations import ConversationStore
from engine.kv.precision import KVSpec
from engine.sampling import SamplingParams
from ui.application import open_window
from ui.background import BackgroundJob
from ui.chat.drop import DropOverlay
from ui.engine_worker import EngineState
from ui.main_window import MainWindow
from ui.notifications import Notifications

WAIT_MS = 60_000
LOAD_MS = 120_000


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_in_the_clipboard(qapp: QApplication) -> Iterator[None]:
    """Take out what tests have put there: Qt would destroy it after the end of Python, and crash."""
    yield
    QGuiApplication.clipboard().clear()


def drop(window: QWidget, *paths: Path, is_taken: bool = True) -> None:
    """Drag files over the window and let them go."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    everything = (
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    centre = window.rect().center()
    with warnings.catch_warnings():
        # From 6.12 on PySide6 wants a QPointF here, which 6.11 does not take.
        warnings.filterwarnings("ignore", ".*QDragEnterEvent", DeprecationWarning)
        entering = QDragEnterEvent(centre, *everything)
    QApplication.sendEvent(window, entering)
    assert window.findChild(DropOverlay).isVisible() is is_taken
    QApplication.sendEvent(window, QDropEvent(QPointF(centre), *everything))


def figure(widget: QWidget, name: str) -> str:
    """Return the text of a figure by its accessible name, empty when it is not shown."""
    label = next(label for label in widget.findChildren(QLabel) if label.accessibleName() == name)
    return "" if label.isHidden() else label.text()


class Desk:
    """A data folder and the window that is open on it; closing and opening again is a restart."""

    def __init__(self, paths: AppPaths, qtbot: QtBot) -> None:
        self.paths = paths
        self._qtbot = qtbot
        self._window: MainWindow | None = None
        self._store: ConversationStore | None = None

    @property
    def window(self) -> MainWindow:
        assert self._window is not None
        return self._window

    @property
    def store(self) -> ConversationStore:
        assert self._store is not None
        return self._store

    def open(self) -> MainWindow:
        """Open the window, without its engine."""
        self._window, self._store = open_window(self.paths, Notifications())
        self._window.show()
        self._qtbot.waitExposed(self._window)
        return self._window

    def open_with_model(self, model: Path, sampling: SamplingParams, kv: KVSpec = DEFAULT_KV) -> MainWindow:
        """Open the window and wait until its model is loaded."""
        custom = dataclasses.replace(DEFAULT_CUSTOM, kv=kv)
        settings = Settings(model=str(model), sampling=sampling, profile=CUSTOM, custom=custom)
        save_settings(self.paths.settings_file, settings)
        window = self.open()
        window.start([])
        self._qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=LOAD_MS)
        return window

    def close(self) -> None:
        """Close the window as a user does and end all that belongs to it."""
        if self._window is None:
            return
        self.window.close()
        BackgroundJob.cancel_all(10_000)
        self.window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.store.close()
        self._window = self._store = None

    def chosen(self) -> Settings:
        """What the settings are now."""
        return dataclasses.replace(self.window._settings.value)


@pytest.fixture
def desk(octavo_home: Path, qtbot: QtBot) -> Iterator[Desk]:
    desk = Desk(AppPaths.from_environment(), qtbot)
    yield desk
    desk.close()
