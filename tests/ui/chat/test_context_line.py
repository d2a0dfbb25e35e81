"""The lines below messages that the model no longer reads itself."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.ledger.context import SpanState
from app.ledger.left_out import LeftOutRun
from app.ledger.records import Summary, SummarySource, SummaryState
from app.store.records import Attachment
from tests.ui.chat.conftest import conversation, reply, user
from tests.ui.chat.test_view import offset_in_view, settle, shown_text, widget_of
from ui.chat.context_line import ContextLine
from ui.chat.document_chip import SentDocument
from ui.chat.view import ChatView

SUMMARY = Summary(
    3, "The boat is green.", ("m1", "m2"), SummarySource.MODEL, "", "a-model", 200, 6, SummaryState.USED
)


def dropped(below_id: int | None, count: int) -> LeftOutRun:
    return LeftOutRun("m1", count, below_id, None)


def lines(view: ChatView) -> list[ContextLine]:
    return [line for line in view.findChildren(ContextLine) if line.isVisible()]


def button(line: ContextLine, text: str) -> QPushButton:
    return next(each for each in line.findChildren(QPushButton) if each.text() == text)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (dropped(7, 6), "The model no longer reads the 6 messages above. They are kept."),
        (dropped(2, 1), "The model no longer reads the message above. It is kept."),
        (LeftOutRun("s3", 2, 3, SUMMARY), "The model reads a summary of the 2 messages above."),
    ],
)
def test_a_line_stands_below_what_the_model_no_longer_reads(
    qtbot: QtBot, view: ChatView, run: LeftOutRun, words: str
) -> None:
    view.show_messages(conversation(10), has_earlier=False)
    view.show_left_out([run], {})
    settle(qtbot, view)
    (line,) = lines(view)
    assert shown_text(line).strip() == words
    above, below = widget_of(view, (run.below_id or 0) - 1), widget_of(view, run.below_id or 0)
    assert above.geometry().bottom() < line.geometry().top()
    assert line.geometry().bottom() < below.geometry().top()


def test_the_line_opens_to_the_summary_and_who_wrote_it(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(10), has_earlier=False)
    view.show_left_out([LeftOutRun("s3", 2, 3, SUMMARY)], {})
    settle(qtbot, view)
    (line,) = lines(view)
    assert not line._card.isVisible()
    button(line, "Show summary").click()
    assert line._card.isVisible()
    assert "The boat is green." in line._card.words and "a-model" in line._card.words
    button(line, "Hide summary").click()
    assert not line._card.isVisible()


def test_there_is_no_line_while_what_is_below_it_is_not_shown(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(10)[4:], has_earlier=True)
    view.show_left_out([dropped(3, 2)], {})
    settle(qtbot, view)
    assert not lines(view)
    view.prepend_messages(conversation(10)[:4], has_earlier=False)
    settle(qtbot, view)
    (line,) = lines(view)
    assert line.geometry().bottom() < widget_of(view, 3).geometry().top()
    view.show_left_out([], {})
    assert not lines(view)


def test_turns_at_the_end_and_turns_before_them_have_lines_of_their_own(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(6), has_earlier=False)
    view.show_left_out([LeftOutRun("s3", 2, 3, SUMMARY), LeftOutRun("m5", 2, None, None)], {})
    settle(qtbot, view)
    first, last = sorted(lines(view), key=lambda line: line.y())
    assert widget_of(view, 2).y() < first.y() < widget_of(view, 3).y()
    assert last.y() > widget_of(view, 6).geometry().bottom()
    view.append_message(user(7, "More"))
    view.show_left_out([LeftOutRun("s3", 2, 3, SUMMARY), LeftOutRun("m5", 2, 7, None)], {})
    settle(qtbot, view)
    assert widget_of(view, 6).y() < last.y() < widget_of(view, 7).y()


def test_lines_follow_the_conversation_that_is_shown(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(10), has_earlier=False)
    view.show_left_out([dropped(3, 2)], {})
    settle(qtbot, view)
    view.show_left_out([dropped(7, 6)], {})
    QApplication.processEvents()
    (line,) = lines(view)
    assert widget_of(view, 6).y() < line.y() < widget_of(view, 7).y()
    view.show_left_out([], {})
    view.show_messages([user(21, "Other"), reply(22, "Answer")], has_earlier=False)
    settle(qtbot, view)
    assert not lines(view)


def test_what_is_read_stays_where_it_is_when_a_line_comes(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(40, "line\n\n" * 5), has_earlier=False)
    settle(qtbot, view)
    bar = view.scroller.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    QApplication.processEvents()
    seen = next(widget for widget in view.scroller._widgets if offset_in_view(view, widget) > 0)
    before = offset_in_view(view, seen)
    view.show_left_out([dropped(3, 2)], {})
    settle(qtbot, view)
    assert offset_in_view(view, seen) == before


def test_the_ledger_is_asked_for_by_key(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(4), has_earlier=False)
    view.show_left_out([LeftOutRun("s3", 2, 3, SUMMARY)], {})
    settle(qtbot, view)
    with qtbot.waitSignal(view.ledger_requested) as asked:
        button(lines(view)[0], "Open Context").click()
    assert asked.args == ["s3"]


def test_tab_reaches_a_line_between_the_messages_beside_it(qtbot: QtBot, view: ChatView) -> None:
    view.show_messages(conversation(6), has_earlier=False)
    view.show_left_out([dropped(3, 2)], {})
    settle(qtbot, view)
    link = button(lines(view)[0], "Open Context")
    assert widget_of(view, 2).focus_stops[-1].nextInFocusChain() is link
    assert widget_of(view, 3).focus_stops[0].previousInFocusChain() is link
    assert QAccessible.queryAccessibleInterface(link).text(QAccessible.Text.Name) == "Open Context"


def test_a_document_that_the_model_does_not_read_says_so_and_no_longer_when_it_does(
    qtbot: QtBot, view: ChatView
) -> None:
    paper, notes = (Attachment(each, "a", "/a", "pdf", "text", 1, None, False) for each in (7, 8))
    view.show_left_out([], {7: SpanState.DROPPED})
    view.show_messages([user(1, "a", paper, notes)], has_earlier=False)
    chips = view.findChildren(SentDocument)
    assert [chip.accessibleName().endswith(" · left out") for chip in chips] == [True, False]

    view.show_left_out([], {8: SpanState.SUMMARIZED})
    assert [chip.accessibleName().endswith(" · summarized") for chip in chips] == [False, True]
    assert "left out" not in shown_text(chips[0])
