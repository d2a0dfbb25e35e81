from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from engine.errors import OctavoError
from ui.notifications import Level, Notice, NoticeAction, NotificationBar, Notifications, versions


@pytest.fixture
def notifications(qtbot: QtBot) -> Notifications:
    return Notifications()


@pytest.fixture
def bar(qtbot: QtBot, notifications: Notifications) -> NotificationBar:
    bar = NotificationBar()
    qtbot.addWidget(bar)
    notifications.posted.connect(bar.show_notice)
    return bar


@pytest.fixture
def hooked(notifications: Notifications) -> Iterator[Notifications]:
    before = sys.excepthook, threading.excepthook
    notifications.install_hooks()
    yield notifications
    sys.excepthook, threading.excepthook = before


def test_an_expected_error_shows_its_own_sentence(bar: NotificationBar, notifications: Notifications) -> None:
    notifications.error("Not loaded", OctavoError("The file is gone. Choose another."))
    assert bar.notice is not None and bar.isVisibleTo(bar.parentWidget())
    assert bar.notice.message == "The file is gone. Choose another."


def test_an_unexpected_error_names_its_kind_and_keeps_the_traceback(
    bar: NotificationBar, notifications: Notifications
) -> None:
    try:
        {}["missing"]
    except KeyError as error:
        notifications.error("Something went wrong", error)
    assert bar.notice is not None
    assert "KeyError" in bar.notice.message
    assert "test_notifications.py" in bar.notice.details


def test_copy_details_puts_everything_on_the_clipboard(
    bar: NotificationBar, notifications: Notifications
) -> None:
    notifications.error("Title of it", "A sentence.", "Traceback: line 1")
    bar.findChild(QPushButton).click()
    text = QGuiApplication.clipboard().text()
    for part in ("Title of it", "A sentence.", "Traceback: line 1", "PySide6", "Python"):
        assert part in text


def test_closing_brings_the_notice_before_back(bar: NotificationBar, notifications: Notifications) -> None:
    notifications.warning("First", "One.")
    notifications.error("Second", "Two.")
    bar.close_notice()
    assert bar.notice == Notice(Level.WARNING, "First", "One.")
    bar.close_notice()
    assert bar.notice is None and bar.isHidden()


def test_information_does_not_wait_behind_anything(
    bar: NotificationBar, notifications: Notifications
) -> None:
    notifications.info("Download complete", "It is here.")
    notifications.error("Second", "Two.")
    bar.close_notice()
    assert bar.notice is None


def test_the_same_notice_is_not_piled_up(bar: NotificationBar, notifications: Notifications) -> None:
    for _ in range(3):
        notifications.error("Disk full", "Free some space.")
    bar.close_notice()
    assert bar.notice is None


def test_the_buttons_of_a_notice_do_what_they_say_and_close_it(
    bar: NotificationBar, notifications: Notifications
) -> None:
    pressed: list[str] = []
    actions = tuple(NoticeAction(text, lambda text=text: pressed.append(text)) for text in ("Go on", "Stop"))
    for number in range(2):
        notifications.post(Notice(Level.WARNING, f"Paused {number}", "Why.", actions=actions))
    shown = {button.text(): button for button in bar.findChildren(QPushButton) if not button.isHidden()}
    assert set(shown) == {"Go on", "Stop"}
    assert shown["Stop"].accessibleName() == "Stop: Paused 1"
    shown["Stop"].click()
    assert pressed == ["Stop"]
    assert bar.notice is not None and bar.notice.title == "Paused 0"
    notifications.error("Other", "Without buttons.")
    assert [button.text() for button in bar.findChildren(QPushButton) if not button.isHidden()] == [
        "Copy details"
    ]


def test_a_notice_gives_way_to_a_newer_one_of_its_topic_and_can_be_withdrawn(
    bar: NotificationBar, notifications: Notifications
) -> None:
    notifications.withdrawn.connect(bar.withdraw)
    notifications.error("Other", "It stays.")
    for number in range(2):
        notifications.post(Notice(Level.WARNING, f"Paused {number}", "Why.", topic="pause"))
    assert bar.notice is not None and bar.notice.title == "Paused 1"
    notifications.withdraw("pause")
    assert bar.notice is not None and bar.notice.title == "Other"
    bar.close_notice()
    assert bar.notice is None


def test_an_exception_in_a_slot_becomes_a_notice(bar: NotificationBar, hooked: Notifications) -> None:
    sys.excepthook(ValueError, ValueError("broken"), None)
    assert bar.notice is not None and bar.notice.level is Level.ERROR
    assert "broken" in bar.notice.message


def test_an_exception_of_another_thread_becomes_a_notice_in_the_ui_thread(
    bar: NotificationBar, hooked: Notifications, qtbot: QtBot
) -> None:
    shown_in: list[int] = []
    hooked.posted.connect(lambda _notice: shown_in.append(threading.get_ident()))

    def fail() -> None:
        raise ValueError("broken elsewhere")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    qtbot.waitUntil(lambda: bar.notice is not None)
    assert "broken elsewhere" in bar.notice.message
    assert bar.notice.details.startswith("Traceback")


def test_versions_name_what_octavo_stands_on() -> None:
    assert {"octavo", "PySide6_Essentials", "mlx", "mlx-lm"} <= {
        line.split()[0] for line in versions().split("\n")
    }
