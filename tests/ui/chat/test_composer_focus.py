"""Where words go that are typed after a press on Send or Stop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QPushButton, QToolButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from ui.chat.attachments import AttachmentChip
from ui.chat.composer import Composer
from ui.chat.send_button import SendButton


class Surroundings(QWidget):
    """A composer that sends at once, between two settings."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.composer, self.after = QPushButton("Before"), Composer(), QPushButton("After")
        column = QVBoxLayout(self)
        for widget in (self.before, self.composer, self.after):
            column.addWidget(widget)
        self.composer.submitted.connect(self._send)
        self.composer.stop_requested.connect(lambda: self.composer.set_busy(False))
        self.pressed = QSignalSpy(self.after.clicked)

    def _send(self) -> None:
        self.composer.set_text("")
        self.composer.set_busy(True)

    @property
    def send(self) -> SendButton:
        return self.composer.findChild(SendButton)

    def type(self, text: str) -> None:
        for letter in text:
            focused = self.focusWidget()
            assert focused is not None
            QTest.keyClicks(focused, letter)


@pytest.fixture
def window(qtbot: QtBot) -> Surroundings:
    window = Surroundings()
    qtbot.addWidget(window)
    window.resize(700, 300)
    window.show()
    window.activateWindow()
    qtbot.waitExposed(window)
    return window


def by_mouse(window: Surroundings) -> None:
    QTest.mouseClick(window.send, Qt.MouseButton.LeftButton)


def by_key(window: Surroundings) -> None:
    window.send.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(window.send, Qt.Key.Key_Space)


@pytest.mark.parametrize("press", [by_mouse, by_key])
def test_after_send_and_after_stop_one_types_on(
    window: Surroundings, press: Callable[[Surroundings], None]
) -> None:
    window.composer.set_text("hello")
    window.before.setFocus()
    press(window)
    window.type("a ")
    window.composer.set_busy(False)
    window.type("b ")
    assert window.composer.text == "a b "
    press(window)
    window.before.setFocus()
    press(window)
    window.type("c ")
    assert window.composer.text == "c "
    assert window.pressed.count() == 0


def test_a_button_that_is_no_longer_of_use_leaves_the_focus_to_the_text(window: Surroundings) -> None:
    window.composer.set_busy(True)
    window.send.setFocus()
    window.composer.set_busy(False)
    assert window.focusWidget() is window.composer.edit
    window.composer.set_busy(True)
    window.before.setFocus()
    window.composer.set_busy(False)
    assert window.focusWidget() is window.before


def test_a_document_that_is_removed_leaves_the_focus_to_the_text(qtbot: QtBot, window: Surroundings) -> None:
    chips = [AttachmentChip(number, f"{number}.pdf", "1 page") for number in range(3)]
    composer = window.composer

    def remove(key: int) -> None:
        chips[:] = [chip for chip in chips if chip.key != key]
        composer.set_attachments(chips)

    composer.attachment_removed.connect(remove)
    composer.set_attachments(chips)
    while chips:
        title = chips[0].title
        cross = next(
            button
            for button in composer.findChildren(QToolButton)
            if button.accessibleName() == f"Remove {title}"
        )
        cross.setFocus(Qt.FocusReason.TabFocusReason)
        QTest.keyClick(cross, Qt.Key.Key_Space)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert window.focusWidget() is composer.edit


def test_the_focus_stays_in_the_text_while_the_mouse_holds_the_button(window: Surroundings) -> None:
    window.composer.set_busy(True)
    window.composer.setFocus()
    QTest.mousePress(window.send, Qt.MouseButton.LeftButton)
    window.type("x")
    QTest.mouseRelease(window.send, Qt.MouseButton.LeftButton)
    assert window.composer.text == "x"


def test_documents_are_reached_from_the_message_below_them(window: Surroundings) -> None:
    first = AttachmentChip(1, "one.txt", "12 characters", encoding="utf-8")
    window.composer.set_attachments([first])
    window.composer.set_attachments([first, AttachmentChip(2, "two.txt", "12 characters")])
    window.composer.edit.setFocus()
    one, two = ["Show how one.txt is read"], ["Hide how two.txt is read"]
    for key, names in (
        (Qt.Key.Key_Backtab, ["Remove two.txt", *two, "Remove one.txt", *one]),
        (Qt.Key.Key_Tab, ["Remove one.txt", *two, "Remove two.txt", "Message", "Attach documents"]),
    ):
        for name in names:
            QTest.keyClick(window.focusWidget(), key)
            assert window.focusWidget().accessibleName() == name
