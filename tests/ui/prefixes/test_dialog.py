from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QAbstractSpinBox, QLabel, QMessageBox, QProgressBar, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.store.conversations import ConversationStore
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.prefixes.records import SaveMode
from engine.wording import format_nbytes
from tests.app.store.prefixes.stored_texts import PAGE_NBYTES
from tests.ui.prefixes.conftest import FLUSH_S, OpenDialog, keep
from tests.ui.prefixes.test_settings_editor import choose
from ui.prefixes.controller import PrefixController
from ui.prefixes.dialog import PrefixDialog
from ui.prefixes.model import LAST_USED, SIZE, TITLE, TOKENS
from ui.stored_settings import StoredSettings

WAIT_MS = 20_000


def titles(dialog: PrefixDialog) -> list[str]:
    return [row.title for row in dialog.table.rows]


def select(dialog: PrefixDialog, *wanted: str) -> None:
    dialog.table.clearSelection()
    model, selection = dialog.table.model(), dialog.table.selectionModel()
    for title in wanted:
        flags = selection.SelectionFlag.Select | selection.SelectionFlag.Rows
        selection.setCurrentIndex(model.index(titles(dialog).index(title), TITLE), flags)


def answer(dialog: PrefixDialog, button: str, asked: list[str]) -> None:
    """Press a button of the question that comes next, if one comes at once."""

    def press() -> None:
        for box in dialog.findChildren(QMessageBox):
            asked.append(box.text())
            next(each for each in box.buttons() if each.text() == button).click()

    QTimer.singleShot(0, press)


@pytest.fixture
def two(service: PrefixService, store: ConversationStore) -> tuple[int, int]:
    """Two conversations with a document in common, of which one has another page, and text of neither."""
    papers = store.create_conversation("Papers").id
    trips = store.create_conversation("Trips <b>north</b>").id
    keep(service, papers, "a document", "an answer")
    keep(service, trips, "a document")
    keep(service, 0, "a question in the terminal")
    return papers, trips


def test_what_is_kept_is_listed_by_conversation_with_its_size_and_what_is_shared(
    two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    rows = {row.title: row for row in dialog.table.rows}
    assert set(rows) == {"Papers", "Trips <b>north</b>", "Read without a conversation"}
    papers, terminal = rows["Papers"], rows["Read without a conversation"]
    assert (papers.num_tokens, papers.shared_nbytes) == (32, PAGE_NBYTES)
    assert 2 * PAGE_NBYTES <= papers.nbytes < 2.1 * PAGE_NBYTES
    assert (terminal.nbytes, terminal.shared_nbytes) == (PAGE_NBYTES, 0)
    assert not dialog._empty.isVisible() and dialog.table.isVisible()


def test_the_bars_say_what_is_on_disk_and_was_written_of_how_much(
    two: tuple[int, int], service: PrefixService, open_dialog: OpenDialog
) -> None:
    service.settings = PrefixSettings(most_nbytes=3_000_000, most_written_nbytes=2_000_000)
    assert service.flush(FLUSH_S)
    dialog = open_dialog()
    figures = service.figures()
    for name, nbytes, most in (
        ("On disk", figures.nbytes, 3_000_000),
        ("Written today", figures.written_today_nbytes, 2_000_000),
    ):
        bar = next(each for each in dialog.findChildren(QProgressBar) if each.accessibleName() == name)
        assert bar.value() == round(1000 * nbytes / most)
        assert f"{format_nbytes(nbytes)} of {format_nbytes(most)}" in bar.accessibleDescription()
    assert "Pages since Octavo was started: 3 saved." in label(dialog, "What happened")


def test_what_comes_while_the_dialog_is_open_is_shown_and_what_is_selected_stays_so(
    qtbot: QtBot,
    two: tuple[int, int],
    service: PrefixService,
    store: ConversationStore,
    open_dialog: OpenDialog,
) -> None:
    dialog = open_dialog()
    select(dialog, "Papers")
    keep(service, store.create_conversation("Later").id, "another document")
    qtbot.waitUntil(lambda: "Later" in titles(dialog), timeout=WAIT_MS)
    assert [row.title for row in dialog.table.chosen] == ["Papers"]


def test_a_click_on_a_column_puts_the_rows_in_its_order(
    two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    select(dialog, "Papers")
    table = dialog.table
    assert [row.last_used for row in table.rows] == sorted((r.last_used for r in table.rows), reverse=True)
    table.sortByColumn(TITLE, Qt.SortOrder.AscendingOrder)
    assert titles(dialog) == ["Papers", "Read without a conversation", "Trips <b>north</b>"]
    table.sortByColumn(SIZE, Qt.SortOrder.DescendingOrder)
    assert titles(dialog)[0] == "Papers"
    assert [row.title for row in table.chosen] == ["Papers"]


def test_pin_pins_and_unpins_what_is_selected(
    qtbot: QtBot, two: tuple[int, int], service: PrefixService, open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    select(dialog, "Papers")
    for words, is_pinned in (("Pin", True), ("Unpin", False)):
        assert dialog.pin_button.text() == words
        dialog.pin_button.click()
        qtbot.waitUntil(lambda wanted=is_pinned: dialog.table.chosen[0].is_pinned is wanted, timeout=WAIT_MS)
        pins = {entry.conversation_id: entry.is_pinned for entry in service.entries()}
        assert pins == {two[0]: is_pinned, two[1]: False, 0: False}


def test_delete_deletes_what_only_the_selected_have_and_keeps_it_away_until_it_goes_on(
    qtbot: QtBot,
    two: tuple[int, int],
    service: PrefixService,
    store: ConversationStore,
    open_dialog: OpenDialog,
) -> None:
    dialog = open_dialog()
    select(dialog, "Papers", "Read without a conversation")
    qtbot.keyClick(dialog.table, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: titles(dialog) == ["Trips <b>north</b>"], timeout=WAIT_MS)
    assert service.figures().num_pages == 1
    assert store.conversation(two[0]).title == "Papers"
    keep(service, two[0], "an answer")
    assert service.figures().num_pages == 1
    service.allow(two[0])
    keep(service, two[0], "an answer")
    assert service.figures().num_pages == 2


def test_clear_asks_once_and_deletes_everything_or_nothing(
    qtbot: QtBot, two: tuple[int, int], service: PrefixService, open_dialog: OpenDialog
) -> None:
    dialog, asked = open_dialog(), list[str]()
    answer(dialog, "Cancel", asked)
    dialog.clear_button.click()
    assert service.flush(FLUSH_S) and len(service.entries()) == 3
    answer(dialog, "Delete all", asked)
    dialog.clear_button.click()
    qtbot.waitUntil(dialog._empty.isVisible, timeout=WAIT_MS)
    assert service.entries() == () and service.figures().num_pages == 0
    assert len(asked) == 2 and format_nbytes(dialog._nbytes) not in asked[1]
    assert not dialog.clear_button.isEnabled() and not dialog.table.isVisible()
    assert "Nothing is kept yet" in dialog._empty.text()


def test_a_conversation_is_opened_and_the_dialog_closed_by_button_and_enter(
    qtbot: QtBot, two: tuple[int, int], controller: PrefixController, open_dialog: OpenDialog
) -> None:
    for press in (
        lambda dialog: dialog.open_button.click(),
        lambda dialog: qtbot.keyClick(dialog.table, Qt.Key.Key_Return),
    ):
        dialog = open_dialog()
        select(dialog, "Papers")
        with qtbot.waitSignal(controller.open_requested) as opened:
            press(dialog)
        assert opened.args == [two[0]]
        assert controller.dialog is None


def test_what_is_of_no_conversation_can_be_deleted_only(
    two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    buttons = (dialog.open_button, dialog.pin_button, dialog.delete_button)
    assert [button.isEnabled() for button in buttons] == [False, False, False]
    select(dialog, "Read without a conversation")
    assert [button.isEnabled() for button in buttons] == [False, False, True]
    select(dialog, "Papers")
    assert [button.isEnabled() for button in buttons] == [True, True, True]
    select(dialog, "Papers", "Trips <b>north</b>")
    assert [button.isEnabled() for button in buttons] == [False, True, True]


def test_settings_are_kept_and_the_service_follows_them(
    service: PrefixService, stored: StoredSettings, open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    choose(dialog.editor, SaveMode.DOCUMENTS)
    dialog.editor._most.setValue(2.5)
    wanted = PrefixSettings(SaveMode.DOCUMENTS, most_nbytes=2_500_000_000)
    assert stored.value.prefixes == service.settings == wanted


@pytest.mark.parametrize(("button", "num_left"), [("Leave it on disk", 3), ("Delete it", 0)])
def test_to_keep_nothing_any_more_offers_to_delete_what_is_there(
    qtbot: QtBot,
    two: tuple[int, int],
    service: PrefixService,
    open_dialog: OpenDialog,
    button: str,
    num_left: int,
) -> None:
    dialog, asked = open_dialog(), list[str]()
    answer(dialog, button, asked)
    choose(dialog.editor, SaveMode.NEVER)
    assert service.mode is SaveMode.NEVER and "nothing is kept on disk" in asked[0]
    qtbot.waitUntil(lambda: len(dialog.table.rows) == num_left, timeout=WAIT_MS)
    assert service.figures().num_pages == num_left
    choose(dialog.editor, SaveMode.NEVER)
    assert len(asked) == 1


def test_with_nothing_on_disk_nothing_is_asked_and_words_stand_for_the_table(
    qtbot: QtBot, open_dialog: OpenDialog
) -> None:
    dialog, asked = open_dialog(), list[str]()
    assert "Nothing is kept yet" in dialog._empty.text() and dialog._empty.isVisible()
    answer(dialog, "Leave it on disk", asked)
    choose(dialog.editor, SaveMode.NEVER)
    assert dialog._empty.text() == "Nothing is kept, as you chose above."
    assert not asked


def test_what_is_wrong_is_said_while_it_is(
    qtbot: QtBot, two: tuple[int, int], tmp_path: Path, open_dialog: OpenDialog
) -> None:
    with closing(sqlite3.connect(tmp_path / "prefixes.db")) as conn:
        conn.execute("UPDATE _sqlite_migrations SET name = 'm999_from_the_future'")
        conn.commit()
    dialog = open_dialog()
    qtbot.waitUntil(dialog.problem.isVisible, timeout=WAIT_MS)
    assert "newer version" in dialog.problem.sentence
    with closing(sqlite3.connect(tmp_path / "prefixes.db")) as conn:
        conn.execute("UPDATE _sqlite_migrations SET name = '001_prefixes'")
        conn.commit()
    qtbot.waitUntil(lambda: not dialog.problem.isVisible() and len(titles(dialog)) == 3, timeout=WAIT_MS)


def test_columns_without_room_are_left_out_and_the_title_stays(
    qtbot: QtBot, two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    table = dialog.table
    table.setStyleSheet("QHeaderView::section { padding: 4px 24px; }")  # wider than the figures
    assert not any(table.isColumnHidden(column) for column in range(LAST_USED + 1))
    size = dialog.size()
    dialog.resize(dialog.minimumSize())
    qtbot.waitUntil(lambda: table.isColumnHidden(TOKENS), timeout=WAIT_MS)
    assert not table.isColumnHidden(SIZE) and table.columnWidth(TITLE) >= 120
    dialog.resize(size)
    qtbot.waitUntil(lambda: not table.isColumnHidden(TOKENS), timeout=WAIT_MS)
    for column in range(TOKENS, LAST_USED + 1):
        assert table.columnWidth(column) >= table.header().sectionSizeHint(column)


def test_all_that_takes_the_focus_has_a_name_and_rows_say_all_of_themselves(
    two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    for widget in dialog.findChildren(QWidget):
        is_inner = isinstance(widget.parent(), QAbstractSpinBox)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible() and not is_inner:
            interface = QAccessible.queryAccessibleInterface(widget)
            assert interface.text(QAccessible.Text.Name), widget
    table = QAccessible.queryAccessibleInterface(dialog.table)
    said = [table.child(i).text(QAccessible.Text.Name) for i in range(table.childCount())]
    assert any(name.startswith("Papers, 32 tokens, 80 KB on disk, 40 KB of it shared") for name in said)


def test_tab_goes_through_the_dialog_from_the_settings_to_the_buttons(
    qtbot: QtBot, two: tuple[int, int], open_dialog: OpenDialog
) -> None:
    dialog = open_dialog()
    select(dialog, "Papers")
    dialog.editor._mode.setFocus()
    order: list[QWidget | None] = []
    for _ in range(8):
        order.append(dialog.focusWidget())
        dialog.focusNextChild()
    buttons: list[QPushButton] = [dialog.open_button, dialog.pin_button, dialog.delete_button]
    assert order == [
        dialog.editor._mode,
        dialog.editor._most,
        dialog.editor._written,
        dialog.table,
        *buttons,
        dialog.clear_button,
    ]


def label(dialog: PrefixDialog, name: str) -> str:
    return next(each.text() for each in dialog.findChildren(QLabel) if each.accessibleName().startswith(name))
