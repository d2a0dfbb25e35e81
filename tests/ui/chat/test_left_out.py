"""The line above which the model reads nothing any more."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from tests.ui.chat.conftest import conversation, reply, user
from tests.ui.chat.test_view import offset_in_view, settle, shown_text, widget_of
from ui.chat.left_out import LeftOutLine
from ui.chat.view import ChatView


def line(view: ChatView) -> LeftOutLine:
    return view._left_out


def read_all(view: ChatView) -> QPushButton:
    return line(view).findChild(QPushButton)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (6, "The model no longer reads the 6 messages above. They are kept."),
        (1, "The model no longer reads the message above. It is kept."),
    ],
)
def test_the_line_stands_above_the_first_message_that_the_model_reads(
    qtbot: QtBot, view: ChatView, count: int, words: str
) -> None:
    view.show_messages(conversation(10), has_earlier=False)
    view.set_context_from(count + 1, count)
    settle(qtbot, view)
    assert shown_text(line(view)) == words
    above, below = widget_of(view, count), widget_of(view, count + 1)
    assert above.geometry().bottom() < line(view).geometry().top()
    assert line(view).geometry().bottom() < below.geometry().top()


def test_there_is_no_line_while_the_model_reads_all_or_its_first_message_is_not_shown(
    qtbot: QtBot, view: ChatView
) -> None:
    view.show_messages(conversation(10)[4:], has_earlier=True)
    assert not line(view).isVisible()
    view.set_context_from(3, 2)
    settle(qtbot, view)
    assert not line(view).isVisible()
    view.prepend_messages(conversation(10)[:4], has_earlier=False)
    settle(qtbot, view)
    assert line(view).isVisible()
    assert line(view).geometry().bottom() < widget_of(view, 3).geometry().top()
    view.set_context_from(None, 0)
    assert not line(view).isVisible()


def test_a_conversation_that_was_longer_before_moves_its_line(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(10), has_earlier=False)
    view.set_context_from(3, 2)
    settle(qtbot, view)
    view.set_context_from(7, 6)
    QApplication.processEvents()
    assert widget_of(view, 6).y() < line(view).y() < widget_of(view, 7).y()
    view.show_messages([user(21, "Other"), reply(22, "Answer")], has_earlier=False)
    settle(qtbot, view)
    assert not line(view).isVisible()
    view.append_message(user(23, "More"))
    view.set_context_from(23, 2)
    settle(qtbot, view)
    assert widget_of(view, 22).y() < line(view).y() < widget_of(view, 23).y()


def test_what_is_read_stays_where_it_is_when_the_line_comes(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(40, "line\n\n" * 5), has_earlier=False)
    settle(qtbot, view)
    bar = view.scroller.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    QApplication.processEvents()
    seen = next(widget for widget in view.scroller._widgets if offset_in_view(view, widget) > 0)
    before = offset_in_view(view, seen)
    view.set_context_from(3, 2)
    settle(qtbot, view)
    assert offset_in_view(view, seen) == before


def test_reading_all_again_is_asked_for_and_not_while_a_reply_is_written(
    qtbot: QtBot, view: ChatView
) -> None:
    view.show_messages(conversation(4), has_earlier=False)
    view.set_context_from(3, 2)
    settle(qtbot, view)
    with qtbot.waitSignal(view.read_all_requested):
        read_all(view).click()
    view.set_actions_enabled(False)
    assert not read_all(view).isEnabled()
    view.set_actions_enabled(True)
    assert read_all(view).isEnabled()


def test_tab_reaches_the_line_between_the_messages_beside_it(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(6), has_earlier=False)
    view.set_context_from(3, 2)
    settle(qtbot, view)
    button = read_all(view)
    assert widget_of(view, 2).focus_stops[-1].nextInFocusChain() is button
    assert widget_of(view, 3).focus_stops[0].previousInFocusChain() is button
    assert QAccessible.queryAccessibleInterface(button).text(QAccessible.Text.Name) == "Read all again"
