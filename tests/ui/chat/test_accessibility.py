from __future__ import annotations

import dataclasses

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QTextEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.store.records import Attachment, MessageState
from tests.ui.chat.conftest import ANSWER, reply, user
from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.composer import Composer
from ui.chat.message_widget import MessageWidget
from ui.chat.scroller import JumpButton
from ui.chat.text_view import TextView
from ui.chat.user_message import UserMessage
from ui.chat.view import ChatView


def focusable(parent: QWidget) -> list[QWidget]:
    return [
        widget
        for widget in parent.findChildren(QWidget)
        if widget.isVisible()
        and widget.focusPolicy() != Qt.FocusPolicy.NoFocus
        and widget.focusProxy() is None
    ]


def name_of(widget: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


def fill(view: ChatView, qtbot: QtBot) -> None:
    document = Attachment(1, "paper.pdf", "/x/paper.pdf", "pdf", "text", 14, None, False)
    view.show_messages(
        [
            user(1, "word\n" * 3000, document),
            dataclasses.replace(reply(2, ANSWER), siblings=(2, 9)),
            user(3, "q"),
            reply(4, "", MessageState.STREAMING),
        ],
        has_earlier=True,
    )
    view.begin_stream(4)
    qtbot.waitUntil(lambda: len(view.findChildren(UserMessage)) == 2)
    view.findChildren(UserMessage)[0].start_editing()
    QApplication.processEvents()


def test_everything_that_takes_the_focus_in_the_conversation_has_a_name(qtbot: QtBot, view: ChatView) -> None:
    fill(view, qtbot)
    widgets = focusable(view)
    assert len(widgets) > 12
    assert [widget for widget in widgets if not name_of(widget)] == []


def test_everything_that_takes_the_focus_in_the_composer_has_a_name(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments(
        [
            AttachmentChip(1, "a.pdf", "x"),
            AttachmentChip(2, "b.txt", "x", encoding="utf-8"),
            AttachmentChip(3, "c.pdf", "", ChipState.READING),
            AttachmentChip(4, "d.pdf", "", ChipState.FAILED, error="No."),
        ]
    )
    QApplication.processEvents()
    widgets = focusable(composer)
    assert len(widgets) >= 8
    assert [widget for widget in widgets if not name_of(widget)] == []


def test_tab_goes_through_the_conversation_in_reading_order(qtbot: QtBot) -> None:
    window, view = QWidget(), ChatView()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.addWidget(view)
    after = QLineEdit()
    column.addWidget(after)
    window.show()
    window.activateWindow()
    view.show_messages([user(1, "q"), reply(2, ANSWER)], has_earlier=False)
    view.append_message(user(3, "again"))
    view.append_message(reply(4, "", MessageState.STREAMING))
    view.begin_stream(4)
    view.append_text(ANSWER)
    view.finish_stream(reply(4, ANSWER))
    qtbot.waitUntil(lambda: len(view.findChildren(UserMessage)) == 2)
    QApplication.processEvents()
    view.scroller.setFocus()
    visited: list[QWidget] = [view.scroller]
    while window.focusWidget() is not after and len(visited) < 100:
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        if window.focusWidget() is not visited[-1]:
            visited.append(window.focusWidget())
    around = {view.scroller, *view.findChildren(JumpButton)}
    inside = [widget for widget in visited[1:-1] if widget not in around]
    assert set(inside) == {widget for widget in focusable(view) if widget.isEnabled()} - around
    message = [view.message_ids.index(owner(widget).message.id) for widget in inside]
    assert message == sorted(message)
    texts = [place(view, widget).y() for widget in inside if isinstance(widget, QTextEdit)]
    assert texts == sorted(texts)
    assert isinstance(inside[0], TextView)


def owner(widget: QWidget | None) -> MessageWidget:
    while not isinstance(widget, MessageWidget):
        assert widget is not None
        widget = widget.parentWidget()
    return widget


def place(view: ChatView, widget: QWidget) -> QPoint:
    return widget.mapTo(view, QPoint(0, 0))
