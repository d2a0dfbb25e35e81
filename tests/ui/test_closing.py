"""Closing while what was read is saved, with a real thread whose saving goes on until it is left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QMainWindow, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.paths import AppPaths
from engine.cancel import CancelToken
from tests.ui.conftest import drop
from ui.chat.drop import DropOverlay
from ui.closing import Ending, SavingCover
from ui.engine_thread import EngineThread
from ui.model_work import MOST_END_S
from ui.request_queue import Priority
from ui.single_instance import WAIT_S

END_S = 60


class Slow:
    """An engine's saving, which goes on until it is cancelled."""

    def __init__(self) -> None:
        self.was_left = False

    def unload(self, cancel: CancelToken | None = None) -> None:
        assert cancel is not None
        self.was_left = cancel.wait(END_S)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def engine(qtbot: QtBot, tmp_path: Path, slow: Slow) -> Iterator[EngineThread]:
    engine, begun = EngineThread(AppPaths(tmp_path)), threading.Event()
    engine.start()
    engine._worker.put(Priority.CONTROL, lambda cancel: begun.set())
    assert begun.wait(END_S)
    engine._worker._works.engine.unload = slow.unload  # type: ignore[method-assign]
    yield engine
    engine.leave()
    engine.shutdown()


class Window(QMainWindow):
    """A window that ends an engine when it closes, with a key of its own."""

    def __init__(self, engine: EngineThread) -> None:
        super().__init__()
        self.ending = Ending(self, engine)
        self.stopped: list[bool] = []
        self.field = QPushButton("Something to press")
        self.setCentralWidget(self.field)
        stop = QAction("Stop", self)
        stop.setShortcut("Esc")
        stop.triggered.connect(lambda: self.stopped.append(True))
        self.addAction(stop)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.ending.end_engine()
        event.accept()


@pytest.fixture
def window(qtbot: QtBot, engine: EngineThread) -> Window:
    window = Window(engine)
    qtbot.addWidget(window)
    window.resize(480, 480)
    window.show()
    qtbot.waitExposed(window)
    return window


def close_and(window: Window, do: Callable[[SavingCover], object]) -> None:
    """Close the window, and do something once it says what it is still there for."""
    timer = QTimer(window)

    def look() -> None:
        cover = window.findChild(SavingCover)
        if cover is not None and cover.isVisible():
            timer.stop()
            do(cover)

    timer.timeout.connect(look)
    timer.start(10)
    assert window.close()
    assert not timer.isActive()


@pytest.mark.parametrize(
    "leave",
    [
        lambda window, cover: QTest.keyClick(cover.focusWidget() or cover, Qt.Key.Key_Escape),
        lambda window, cover: QTest.keyClick(
            cover.focusWidget() or cover, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier
        ),
        lambda window, cover: cover.findChild(QPushButton).click(),
        lambda window, cover: QCoreApplication.sendEvent(window.windowHandle(), QCloseEvent()),
        lambda window, cover: window.ending.leave(),
    ],
    ids=["Escape", "Quit", "the button", "the title bar", "a signal"],
)
def test_a_window_that_saves_says_so_and_is_left_at_once(
    window: Window, engine: EngineThread, slow: Slow, leave: Callable[[QWidget, SavingCover], object]
) -> None:
    close_and(window, lambda cover: leave(window, cover))
    assert slow.was_left
    assert engine.has_ended(0)
    assert not window.isVisible()
    assert not window.stopped  # by the window's own Escape


def test_nothing_else_can_be_done_in_a_window_that_saves(window: Window, engine: EngineThread) -> None:
    seen: list[tuple[bool, bool, str]] = []

    def look(cover: SavingCover) -> None:
        focus = window.focusWidget()
        name = "" if focus is None else focus.accessibleName()
        seen.append((window.field.isEnabled(), cover.geometry() == window.rect(), name))
        engine.leave()

    close_and(window, look)
    assert seen == [(False, True, "Close now, without saving the rest")]


def test_a_dialog_does_not_stay_in_front_of_a_window_that_saves(window: Window, engine: EngineThread) -> None:
    dialog, seen = QDialog(window), []
    dialog.open()

    def look(_: SavingCover) -> None:
        seen.append(dialog.isVisible())
        engine.leave()

    close_and(window, look)
    assert seen == [False]


def test_files_are_not_taken_by_a_window_that_saves(
    window: Window, engine: EngineThread, tmp_path: Path
) -> None:
    dropped: list[list[Path]] = []
    DropOverlay(window).dropped.connect(dropped.append)
    drop(window, tmp_path / "before.txt")

    def drop_and_leave(_: SavingCover) -> None:
        engine.leave()
        drop(window, tmp_path / "meanwhile.txt", is_taken=False)

    close_and(window, drop_and_leave)
    assert dropped == [[tmp_path / "before.txt"]]


def test_an_end_that_takes_no_time_shows_nothing(window: Window, engine: EngineThread) -> None:
    engine.leave()
    assert window.close()
    assert window.findChild(SavingCover) is None
    assert engine.has_ended(0)


def test_before_it_closes_a_window_has_nothing_to_leave(window: Window, slow: Slow) -> None:
    assert not window.ending.leave()
    close_and(window, lambda cover: window.ending.leave())
    assert slow.was_left


def test_a_start_waits_for_a_window_that_saves_as_long_as_that_may_take() -> None:
    assert WAIT_S > MOST_END_S + 5
