"""The text of a document in a view: what is seen, scrolled to and marked."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QSignalSpy
from pytestqt.qtbot import QtBot

from app.documents.places import Places
from ui.documents.text import DocumentText

LINES = [f"Line {number} 語🙂 of the long text." for number in range(30_000)]
LONG = "\n".join(LINES)


@pytest.fixture
def view(qtbot: QtBot) -> DocumentText:
    view = DocumentText()
    qtbot.addWidget(view)
    view.resize(500, 600)
    view.show()
    qtbot.waitExposed(view)
    view.show_text(LONG, (), (), is_code=False)
    return view


def first_line(view: DocumentText) -> int:
    """Return the number of the line that stands first in the view."""
    cursor = view.page.cursorForPosition(view.page.viewport().rect().topLeft())
    return int(cursor.block().text().split()[1])


def test_only_a_part_of_a_long_text_is_laid_out(view: DocumentText) -> None:
    assert view.page.document().characterCount() < len(LONG) / 10


@pytest.mark.parametrize("number", [1, 500, 15_000, 29_999])
def test_any_line_can_be_gone_to(view: DocumentText, number: int) -> None:
    offset = LONG.index(f"Line {number} ")
    view.go_to(offset)
    assert view.is_seen(offset)


def test_scrolling_goes_through_the_text_without_jumps_in_both_directions(view: DocumentText) -> None:
    view.go_to(LONG.index("Line 10000 "))
    bar = view.page.verticalScrollBar()
    seen = [first_line(view)]
    for _ in range(600):
        bar.setValue(bar.value() + 100)
        seen.append(first_line(view))
    steps = [after - before for before, after in pairwise(seen)]
    assert min(steps) >= 0 and max(steps) <= 100 // 15
    assert seen[-1] > 11_500
    for _ in range(600):
        bar.setValue(bar.value() - 100)
    assert abs(first_line(view) - seen[0]) <= 3


def test_the_ends_are_reached_with_the_keyboard(view: DocumentText, qtbot: QtBot) -> None:
    qtbot.keyClick(view.page, Qt.Key.Key_End)
    assert view.is_seen(len(LONG) - 5)
    assert view._bar.value() == view._bar.maximum()
    qtbot.keyClick(view.page, Qt.Key.Key_Home)
    assert first_line(view) == 0
    assert view.page.verticalScrollBar().value() == 0
    assert view._bar.value() == 0


def test_the_scroll_bar_of_the_document_leads_to_its_place(view: DocumentText) -> None:
    view._bar.setValue(len(LONG) // 2)
    assert abs(view.first_offset - len(LONG) // 2) < 2 * len(LINES[0])


def test_a_passage_is_marked_with_exactly_its_characters(view: DocumentText) -> None:
    start = LONG.index("Line 20000 ")
    view.show_passage(start, start + len(LINES[20_000]))
    assert view.is_seen(start)
    marks = view.page.extraSelections()
    assert [mark.cursor.selectedText() for mark in marks] == [LINES[20_000]]


def test_the_passage_stays_in_sight_when_the_width_changes(view: DocumentText, qtbot: QtBot) -> None:
    start = LONG.index("Line 20000 ")
    view.show_passage(start, start + 10)
    view.resize(180, 600)
    qtbot.waitUntil(lambda: view.page.viewport().width() < 180)
    assert view.is_seen(start)


def test_what_is_selected_stays_selected_when_the_stretch_moves(view: DocumentText) -> None:
    view.go_to(LONG.index("Line 10000 "))
    cursor = view.page.textCursor()
    block = view.page.cursorForPosition(view.page.viewport().rect().topLeft()).block()
    cursor.setPosition(block.position())
    cursor.setPosition(block.position() + 12, cursor.MoveMode.KeepAnchor)
    view.page.setTextCursor(cursor)
    chosen, start = cursor.selectedText(), view._stretch.start
    bar = view.page.verticalScrollBar()
    while view._stretch.start == start:
        bar.setValue(bar.value() + 200)
    assert view.page.textCursor().selectedText() == chosen


def test_a_selection_reaches_beyond_what_is_laid_out(view: DocumentText, qtbot: QtBot) -> None:
    start, stop = LONG.index("Line 10000 "), LONG.index("Line 20000 ")
    view.go_to(start)
    view.page.select(view._stretch.position(start), view._stretch.position(start + 4))
    view.go_to(stop)
    assert not view._stretch.holds(start)
    view.page.select(view.page.textCursor().anchor(), view._stretch.position(stop))
    qtbot.keyClick(view.page, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == LONG[start:stop]
    view.page.select(3, 3)
    assert view.selected_text() == ""


def test_all_of_a_long_text_can_be_selected_and_copied(view: DocumentText, qtbot: QtBot) -> None:
    view.go_to(LONG.index("Line 10000 "))
    for key in (Qt.Key.Key_A, Qt.Key.Key_C):
        qtbot.keyClick(view.page, key, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == LONG


def test_the_keyboard_selects_from_the_passage_on(view: DocumentText, qtbot: QtBot) -> None:
    start = LONG.index("Line 20000 ")
    view.show_passage(start, start + 10)
    qtbot.keyClick(view.page, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected_text() == f"{LINES[20_000]}\n"
    for _ in range(4):
        qtbot.keyClick(view.page, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.selected_text() == f"{LINES[20_000]}\nLine"


def test_the_place_that_is_told_is_the_one_that_was_gone_to(view: DocumentText) -> None:
    told = QSignalSpy(view.moved)
    start = LONG.index("Line 20000 ")
    view.show_passage(start, start + 10)
    assert told.at(told.count() - 1) == [start]
    bar = view.page.verticalScrollBar()
    bar.setValue(bar.value() + 40)
    assert told.at(told.count() - 1) == [view.first_offset]


def test_headings_are_larger_and_pages_have_their_numbers(view: DocumentText) -> None:
    text = "# Title\n\nFirst page.\n\nSecond page."
    starts = (0, text.index("Second"))
    view.show_text(text, Places.of(text, "pdf", starts).headings, starts, is_code=False)
    blocks = [view.page.document().findBlockByNumber(number) for number in range(3)]
    sizes = [block.begin().fragment().charFormat().fontPointSize() for block in (blocks[0], blocks[2])]
    assert sizes[0] > sizes[1]
    assert [(mark.position, mark.number) for mark in view.page._pages] == [(0, 1), (starts[1], 2)]
