from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView, QPushButton
from pytestqt.qtbot import QtBot

from app.store.conversations import ConversationStore
from ui.conversations.pane import ConversationPane


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    store = ConversationStore.open(tmp_path / "conversations.db")
    yield store
    store.close()


@pytest.fixture
def pane(qtbot: QtBot, store: ConversationStore) -> ConversationPane:
    pane = ConversationPane(store)
    qtbot.addWidget(pane)
    pane.resize(260, 600)
    pane.show()
    return pane


def titles(pane: ConversationPane) -> list[str]:
    return [conversation.title for conversation in pane.model.conversations()]


def view_of(pane: ConversationPane) -> QListView:
    view = pane.findChild(QListView)
    assert view is not None
    return view


def search_of(pane: ConversationPane) -> QLineEdit:
    field = pane.findChild(QLineEdit)
    assert field is not None
    return field


def test_search_narrows_the_list_while_typing(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    for title in ("Café menu", "Paged attention", "100% cotton"):
        store.create_conversation(title)
    pane.refresh()
    for text, found in (("cafe", ["Café menu"]), ("%", ["100% cotton"]), ("ATTEN", ["Paged attention"])):
        search_of(pane).clear()
        qtbot.keyClicks(search_of(pane), text)
        qtbot.waitUntil(lambda found=found: titles(pane) == found)
    qtbot.keyClick(search_of(pane), Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: len(titles(pane)) == 3)


def test_enter_in_the_search_field_opens_the_first_find(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    wanted = store.create_conversation("Wanted")
    store.create_conversation("Other")
    qtbot.keyClicks(search_of(pane), "want")
    with qtbot.waitSignal(pane.opened) as opened:
        qtbot.keyClick(search_of(pane), Qt.Key.Key_Return)
    assert opened.args == [wanted.id]


def test_a_title_is_changed_in_place(qtbot: QtBot, store: ConversationStore, pane: ConversationPane) -> None:
    conversation = store.create_conversation("Old")
    pane.refresh()
    pane.set_current(conversation.id)
    pane.rename_current()
    editor = view_of(pane).findChild(QLineEdit)
    assert editor is not None and editor.text() == "Old"
    editor.setText("New title")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: titles(pane) == ["New title"])
    assert store.conversation(conversation.id).title == "New title"


def test_the_old_title_is_selected_so_that_typing_replaces_it(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    conversation = store.create_conversation("Old")
    pane.refresh()
    pane.set_current(conversation.id)
    pane.rename_current()
    editor = view_of(pane).findChild(QLineEdit)
    qtbot.keyClicks(editor, "New")
    assert editor.text() == "New"


def test_a_title_being_typed_outlives_what_happens_in_the_list(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    conversation = store.create_conversation("Old")
    pane.refresh()
    pane.set_current(conversation.id)
    pane.rename_current()
    editor = view_of(pane).findChild(QLineEdit)
    editor.setText("New")
    store.create_conversation("Another")
    pane.set_writing(conversation.id)
    pane.refresh()
    qtbot.wait(10)
    assert editor.text() == "New" and titles(pane) == ["Old"]
    QTest.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: sorted(titles(pane)) == ["Another", "New"])


def test_escape_leaves_a_title_as_it_was(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    conversation = store.create_conversation("Old")
    pane.refresh()
    pane.set_current(conversation.id)
    pane.rename_current()
    editor = view_of(pane).findChild(QLineEdit)
    assert editor is not None
    editor.setText("Never mind")
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert store.conversation(conversation.id).title == "Old"


def test_pinning_moves_to_the_top(store: ConversationStore, pane: ConversationPane) -> None:
    old = store.create_conversation("Old")
    store.create_conversation("Newer")
    pane.refresh()
    assert titles(pane) == ["Newer", "Old"]
    pane.set_current(old.id)
    pane.toggle_pin_current()
    assert titles(pane) == ["Old", "Newer"]
    pane.toggle_pin_current()
    assert titles(pane) == ["Newer", "Old"]


def test_arrow_keys_open_conversations_and_pass_over_headings(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    first, second = store.create_conversation("First"), store.create_conversation("Second")
    store.set_pinned(second.id, True)
    pane.refresh()
    pane.set_current(second.id)
    with qtbot.waitSignal(pane.opened) as opened:
        qtbot.keyClick(view_of(pane), Qt.Key.Key_Down)
    assert opened.args == [first.id]


def test_a_click_and_enter_mean_to_write_there_and_renaming_does_not(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    conversation = store.create_conversation("First")
    pane.refresh()
    view = view_of(pane)
    index = pane.model.index_of(conversation.id)
    middle = view.visualRect(index).center()
    with qtbot.waitSignal(pane.chosen):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    with qtbot.waitSignal(pane.chosen):
        qtbot.keyClick(view, Qt.Key.Key_Return)
    qtbot.keyClicks(search_of(pane), "fir")
    with qtbot.waitSignal(pane.chosen):
        qtbot.keyClick(search_of(pane), Qt.Key.Key_Return)
    with qtbot.assertNotEmitted(pane.chosen):
        qtbot.keyClick(view, Qt.Key.Key_Down)
        view.edit(index)
        view.clicked.emit(index)
    editor = view.findChild(QLineEdit)
    assert editor.isVisible()
    with qtbot.waitSignal(view.itemDelegate().editing_ended):
        qtbot.keyClick(editor, Qt.Key.Key_Escape)


def test_showing_the_current_one_asks_for_nothing(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    one, two = store.create_conversation("One"), store.create_conversation("Two")
    pane.refresh()
    with qtbot.assertNotEmitted(pane.opened):
        pane.set_current(one.id)
        pane.set_current(two.id)
        pane.refresh()
        pane.set_current(None)


def test_the_undo_bar_asks_once_and_goes(qtbot: QtBot, pane: ConversationPane) -> None:
    pane.undo_bar.offer("A title that is much too long to be shown in a narrow pane at the left")
    assert pane.undo_bar.isVisible()
    with qtbot.waitSignal(pane.undo_requested):
        pane.undo_bar.findChild(QPushButton).click()
    assert pane.undo_bar.isHidden()


def test_five_thousand_conversations_are_painted_in_one_screen(
    qtbot: QtBot, store: ConversationStore, pane: ConversationPane
) -> None:
    with store._connection.write() as db:
        db.executescript(
            """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
               INSERT INTO conversations (title, renamed, created_at, updated_at)
               SELECT 'Conversation ' || i, 1, '2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00+00:00'
               FROM n"""
        )
    pane.refresh()
    assert len(titles(pane)) == 5000
    asked: list[int] = []
    delegate = view_of(pane).itemDelegate()
    paint = delegate.paint

    def counting(*args: object) -> None:
        asked.append(1)
        paint(*args)

    delegate.paint = counting
    picture = QPixmap(pane.size())
    pane.render(picture)
    assert 0 < len(asked) < 60
