from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from engine.guard import GuardAction, GuardStep
from tests.engine.memory_samples import samples
from tests.ui.conftest import Desk
from ui.engine_worker import EngineState
from ui.main_window import MainWindow
from ui.notifications import Level, NotificationBar

PAUSE = GuardAction(GuardStep.PAUSE, False, "swap grows by 40 MB a second", "The reply waits.")


@pytest.fixture
def window(desk: Desk) -> Iterator[MainWindow]:
    yield desk.open()


@pytest.fixture
def bar(window: MainWindow) -> NotificationBar:
    return window.centre.notification_bar


def button(bar: NotificationBar, text: str) -> QPushButton:
    return next(each for each in bar.findChildren(QPushButton) if each.text() == text and not each.isHidden())


def test_a_pause_says_why_and_asks_until_it_ends(window: MainWindow, bar: NotificationBar) -> None:
    window._engine.guard_acted.emit(PAUSE)
    assert bar.notice is not None
    assert bar.notice.message == "Swap grows by 40 MB a second. It goes on when memory is free."
    window._engine.guard_acted.emit(PAUSE)
    window._engine.guard_acted.emit(GuardAction(GuardStep.PAUSE, True, "", "The reply goes on."))
    assert bar.notice is None


def test_a_pause_is_over_when_the_reply_is(window: MainWindow, bar: NotificationBar) -> None:
    window._engine.guard_acted.emit(PAUSE)
    window._engine.state_changed.emit(EngineState.READY)
    assert bar.notice is None


def test_stop_stops_the_reply(window: MainWindow, bar: NotificationBar) -> None:
    window.chat.stream.conversation_id = 1
    window._engine.guard_acted.emit(PAUSE)
    button(bar, "Stop").click()
    assert window.chat.stream._stopping
    window.chat.stream.conversation_id = None
    assert bar.notice is None


def test_go_on_ends_the_pause_of_the_guard(window: MainWindow, bar: NotificationBar) -> None:
    guard = window._engine.guard
    for critical in samples("c" * 200):
        guard.take(critical)
    assert guard.height is GuardStep.PAUSE
    window._engine.guard_acted.emit(PAUSE)
    button(bar, "Go on").click()
    assert guard.height is GuardStep.TRIM
    assert bar.notice is None


@pytest.mark.parametrize(
    ("step", "is_said"),
    [
        (GuardStep.CLEAR_CACHE, False),
        (GuardStep.LOWER_TIERS, True),
        (GuardStep.SPILL_IDLE, False),
        (GuardStep.SMALLER_CHUNKS, False),
        (GuardStep.TRIM, True),
    ],
)
def test_of_the_other_steps_two_are_said_quietly(
    qtbot: QtBot, window: MainWindow, bar: NotificationBar, step: GuardStep, is_said: bool
) -> None:
    window._engine.guard_acted.emit(GuardAction(step, False, "memory is short", "Something was done."))
    assert (bar.notice is not None) == is_said
    if bar.notice is not None:
        assert (bar.notice.level, bar.notice.message) == (Level.INFO, "Something was done.")
    bar.clear()
    window._engine.guard_acted.emit(GuardAction(step, True, "", "It is as before."))
    assert bar.notice is None
