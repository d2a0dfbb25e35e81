from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QTimer
from PySide6.QtGui import QAccessible, QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from app.store.records import MessageState
from tests.ui.conftest import WAIT_MS, Desk, drop
from tests.ui.inspector.panels import loaded_model
from ui.about import AboutDialog
from ui.chat.attachments import ChipState
from ui.chat.drop import DropOverlay
from ui.chat.prompt_edit import PromptEdit
from ui.chat.user_message import UserMessage
from ui.main_window import MainWindow
from ui.models.chooser import ModelChooser
from ui.notifications import Level
from ui.theme import Theme

TEXT = "The lighthouse at Cape Nord was built in 1887 by Ida Halvorsen.\n"


def unnamed(root: QWidget) -> list[str]:
    """Return the controls that a screen reader has no name for."""
    missing = []
    for widget in [root, *root.findChildren(QWidget)]:
        if widget.focusPolicy() == Qt.FocusPolicy.NoFocus or widget.focusProxy() is not None:
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        if interface is None or not interface.text(QAccessible.Text.Name).strip():
            missing.append(f"{type(widget).__name__} in {type(widget.parent()).__name__}")
    return missing


def chips(window: MainWindow) -> list[tuple[str, ChipState]]:
    reading = window.chat.documents.reading
    return [(chip.title, chip.state) for chip in window.chat.attachments.chips(reading)]


def action(window: MainWindow, shortcut: str) -> QAction:
    wanted = QKeySequence(shortcut)
    return next(item for item in window.findChildren(QAction) if wanted in item.shortcuts())


def write(window: MainWindow, qtbot: QtBot, text: str) -> None:
    qtbot.keyClicks(window.composer.edit, text)


def test_every_control_has_a_name_for_screen_readers(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    window = desk.open()
    file = tmp_path / "notes.txt"
    file.write_text(TEXT)
    drop(window, file)
    qtbot.waitUntil(lambda: chips(window) == [("notes.txt", ChipState.READY)], timeout=WAIT_MS)
    window._notifications.error("Title", "Sentence.")
    window.busy_bar.show_for("Another")
    window.conversations.undo_bar.offer("Deleted")
    chooser = ModelChooser(window.models.library, window.models.downloads, None, window)
    about = AboutDialog(window)
    for root in (window, chooser, about):
        assert unnamed(root) == []


def test_shortcuts_of_the_menus_are_unique_and_complete(desk: Desk) -> None:
    window = desk.open()
    shortcuts = [
        shortcut.toString() for item in window.findChildren(QAction) for shortcut in item.shortcuts()
    ]
    assert len(shortcuts) == len(set(shortcuts))
    assert {"Ctrl+N", "Ctrl+O", "Ctrl+F", "Ctrl+K", "F2", "Ctrl+Q", "Ctrl+,", "Esc"} <= set(shortcuts)


def test_the_first_start_offers_the_starter_model(desk: Desk) -> None:
    window = desk.open()
    assert window.centre.welcome.isVisible()
    assert window.centre.welcome._get.isVisible()
    assert window.centre.welcome._choose.text() == "Choose another"


def test_without_a_model_sending_is_refused_and_nothing_is_lost(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    write(window, qtbot, "Hello")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer.text == "Hello"
    assert window.chat._refused == "Choose a model first."
    assert window.chat.session.messages == []


def test_drafts_stay_with_their_conversation_and_survive_a_restart(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    first = window.chat.session.conversation_id
    write(window, qtbot, "First draft")
    window.chat.switcher.new()
    second = window.chat.session.conversation_id
    assert second != first and window.composer.text == ""
    write(window, qtbot, "Second draft")
    window.chat.switcher.open(first)
    assert window.composer.text == "First draft"
    window.chat.switcher.open(second)
    assert window.composer.text == "Second draft"
    write(window, qtbot, ", longer")
    desk.close()
    window = desk.open()
    window.chat.switcher.open(second)
    assert window.composer.text == "Second draft, longer"


def test_a_draft_is_saved_while_the_window_stays_open(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    write(window, qtbot, "Precious")
    conversation_id = window.chat.session.conversation_id
    qtbot.waitUntil(lambda: desk.store.conversation(conversation_id).draft == "Precious", timeout=WAIT_MS)


def test_a_draft_is_saved_while_the_user_goes_on_writing(
    desk: Desk, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.conversation_session._DRAFT_DELAY_MS", 60_000)
    window = desk.open()
    timer = window.chat.session._draft_timer
    write(window, qtbot, "On")
    qtbot.waitUntil(lambda: timer.remainingTime() < 59_990)
    write(window, qtbot, " and on")
    assert timer.remainingTime() < 59_990


def answer_the_question(window: MainWindow, qtbot: QtBot, button: str, asked: list[str]) -> None:
    """Click a button of the next message box, as soon as it is there."""

    def click() -> None:
        box = window.findChild(QMessageBox)
        if box is None:
            QTimer.singleShot(10, click)
            return
        asked.append(box.informativeText())
        qtbot.mouseClick(
            next(each for each in box.buttons() if each.text() == button), Qt.MouseButton.LeftButton
        )

    QTimer.singleShot(0, click)


def test_closing_asks_before_words_are_lost_and_then_ends_the_engine(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    window.start([])
    write(window, qtbot, "Lost")
    desk.store._connection._db.execute("PRAGMA query_only=ON")
    asked: list[str] = []
    answer_the_question(window, qtbot, "Close without saving", asked)
    window.close()
    assert len(asked) == 1 and "may not read or write" in asked[0]
    assert window._engine._worker.isFinished()


def test_closing_saves_the_words_once_that_is_possible(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    write(window, qtbot, "Kept")
    db = desk.store._connection._db
    db.execute("PRAGMA query_only=ON")
    asked: list[str] = []
    answer_the_question(window, qtbot, "Try again", asked)
    QTimer.singleShot(0, lambda: db.execute("PRAGMA query_only=OFF"))
    window.close()
    assert len(asked) == 1
    assert desk.store.conversations()[0].draft == "Kept"


def test_a_draft_that_cannot_be_saved_is_told_once_and_saved_later(
    desk: Desk, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.conversation_session._DRAFT_DELAY_MS", 0)
    monkeypatch.setattr("ui.conversation_session._DRAFT_RETRY_MS", 10)
    window = desk.open()
    db = desk.store._connection._db
    db.execute("PRAGMA query_only=ON")
    told: list[object] = []
    window.chat.session.draft_unsaved.connect(told.append)
    write(window, qtbot, "Words")
    qtbot.waitUntil(lambda: len(told) == 1)
    qtbot.wait(100)
    assert len(told) == 1
    db.execute("PRAGMA query_only=OFF")
    qtbot.waitUntil(lambda: desk.store.conversations()[0].draft == "Words")


def test_a_reply_that_cannot_be_saved_is_shown_and_saved_later(
    desk: Desk, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.unsaved_replies._RETRY_MS", 10)
    window = desk.open()
    store, db = desk.store, desk.store._connection._db
    first = window.chat.session.conversation_id
    question = store.add_user_message(first, None, "Question")
    row = store.begin_reply(first, question.id, "A model")
    store.save_partial(row.id, "The beginning")
    db.execute("PRAGMA query_only=ON")
    reply = dataclasses.replace(row, text="The beginning and the end", state=MessageState.STOPPED)
    window._engine.reply_unsaved.emit(reply)
    assert store.message(row.id).text == "The beginning"
    window.chat.session.conversation_id = None
    window.chat.switcher.open(first)
    assert window.chat.session.messages[-1] == reply
    with qtbot.waitSignal(window.chat._unsaved.saved):
        db.execute("PRAGMA query_only=OFF")
    saved = store.message(row.id)
    assert (saved.text, saved.state) == (reply.text, reply.state)


def test_new_conversations_do_not_pile_up_unused(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    for _ in range(3):
        action(window, "Ctrl+N").trigger()
    assert len(desk.store.conversations()) == 1
    write(window, qtbot, "Hello")
    action(window, "Ctrl+N").trigger()
    assert len(desk.store.conversations()) == 2


def test_a_dropped_document_becomes_an_attachment_and_survives_a_restart(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    window = desk.open()
    file = tmp_path / "notes.txt"
    file.write_text(TEXT)
    drop(window, file)
    assert chips(window) == [("notes.txt", ChipState.READING)]
    assert window.findChild(DropOverlay).isHidden()
    qtbot.waitUntil(lambda: chips(window) == [("notes.txt", ChipState.READY)], timeout=WAIT_MS)
    drop(window, file)
    assert len(chips(window)) == 1
    desk.close()
    window = desk.open()
    assert chips(window) == [("notes.txt", ChipState.READY)]
    assert window.chat.attachments.attachments[0].text.strip() == TEXT.strip()
    window.chat.attachments.remove(window.chat.attachments._open_drafts()[0].key)
    assert desk.store.draft_attachments(window.chat.session.conversation_id) == []


def test_a_document_that_cannot_be_read_says_why_on_its_chip(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    window = desk.open()
    file = tmp_path / "empty.pdf"
    file.write_bytes(b"")
    drop(window, file)
    qtbot.waitUntil(lambda: chips(window) == [("empty.pdf", ChipState.FAILED)], timeout=WAIT_MS)
    (chip,) = window.chat.attachments.chips(window.chat.documents.reading)
    assert chip.error is not None and "empty.pdf" in chip.error
    assert window.chat._check.refusal("") == "Write something first."


def test_a_message_does_not_go_without_a_document_that_could_not_be_read(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    window = desk.open()
    file = tmp_path / "five.txt"
    file.write_bytes(b"")
    drop(window, file)
    qtbot.waitUntil(lambda: chips(window) == [("five.txt", ChipState.FAILED)], timeout=WAIT_MS)
    window.composer.set_text("Hello")
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer._hint_line.text() == "five.txt could not be attached. Remove it first."
    assert (window.composer.text, len(chips(window))) == ("Hello", 1)

    window.chat.attachments.remove(window.chat.attachments._open_drafts()[0].key)
    assert window.composer._hint_line.text() == ""
    qtbot.keyClick(window.composer.edit, Qt.Key.Key_Return)
    assert window.composer._hint_line.text() == "Choose a model first."


def test_another_encoding_reads_the_file_again(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    window = desk.open()
    file = tmp_path / "letter.txt"
    file.write_bytes("Dies ist ein Brief über Öl, größer als sonst und mit Grüßen.\n".encode("cp1252") * 30)
    drop(window, file)
    qtbot.waitUntil(lambda: [state for _, state in chips(window)] == [ChipState.READY], timeout=WAIT_MS)
    attachments = window.chat.attachments
    before = attachments.attachments[0]
    attachments.set_encoding(attachments._open_drafts()[0].key, "cp1251")
    qtbot.waitUntil(
        lambda: attachments.attachments[0].encoding == "cp1251" and not attachments.is_reading,
        timeout=WAIT_MS,
    )
    after = attachments.attachments[0]
    assert after.id == before.id
    assert after.text != before.text
    (chip,) = attachments.chips(window.chat.documents.reading)
    assert chip.tip.startswith(f"{file}\n\nDies ist ein Brief ьber Цl")
    assert desk.store.draft_attachments(window.chat.session.conversation_id) == [after]


def test_a_text_that_cannot_be_read_again_stays_as_it_was(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    window = desk.open()
    file = tmp_path / "letter.txt"
    file.write_text(TEXT)
    drop(window, file)
    qtbot.waitUntil(lambda: [state for _, state in chips(window)] == [ChipState.READY], timeout=WAIT_MS)
    file.write_bytes(b"")
    attachments = window.chat.attachments
    attachments.set_encoding(attachments._open_drafts()[0].key, "cp1251")
    qtbot.waitUntil(lambda: not attachments.is_reading, timeout=WAIT_MS)
    (chip,) = attachments.chips(window.chat.documents.reading)
    assert (chip.state, chip.encoding) == (ChipState.READY, "utf-8")
    notice = window.centre.notification_bar.notice
    assert notice is not None and "is empty" in notice.message


def test_a_document_that_is_read_while_another_conversation_is_open_lands_where_it_was_dropped(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    window = desk.open()
    file = tmp_path / "notes.txt"
    file.write_text(TEXT)
    first = window.chat.session.conversation_id
    drop(window, file)
    window.chat.switcher.new()
    assert window.chat.session.conversation_id != first
    assert chips(window) == []
    qtbot.waitUntil(lambda: bool(desk.store.draft_attachments(first)), timeout=WAIT_MS)
    window.chat.switcher.open(first)
    assert chips(window) == [("notes.txt", ChipState.READY)]


def test_deleting_opens_another_and_undo_brings_it_back_with_its_draft(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    first = window.chat.session.conversation_id
    write(window, qtbot, "Keep me")
    window.deletion.delete_open()
    assert window.chat.session.conversation_id not in (first, None)
    assert window.conversations.undo_bar.isVisible()
    assert window.composer.text == ""
    window.conversations.undo_bar._undo.click()
    assert window.chat.session.conversation_id == first
    assert window.composer.text == "Keep me"


def test_every_deletion_since_the_start_can_be_undone_from_the_menu(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    undo = action(window, "Ctrl+Shift+T")
    assert not undo.isEnabled()
    ids = []
    for text in ("First", "Second"):
        write(window, qtbot, text)
        ids.append(window.chat.session.conversation_id)
        window.deletion.delete_open()
    window.conversations.undo_bar.hide()
    for conversation_id in reversed(ids):
        undo.trigger()
        assert window.chat.session.conversation_id == conversation_id
        assert window.focusWidget() is window.composer.edit
    assert not undo.isEnabled()
    assert {conversation.draft for conversation in desk.store.conversations()} >= {"First", "Second"}


def test_deleted_conversations_are_gone_for_good_when_the_window_closes(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    write(window, qtbot, "Secret words")
    window.deletion.delete_open()
    files = [desk.paths.conversations_db, desk.paths.home / "conversations.db-wal"]
    assert any(b"Secret words" in file.read_bytes() for file in files)
    desk.close()
    assert not any(b"Secret words" in file.read_bytes() for file in files if file.exists())
    desk.open()
    assert desk.store.purge_deleted() == 0


def test_a_prefix_cache_that_cannot_be_used_is_told_and_hinders_nothing(desk: Desk, qtbot: QtBot) -> None:
    desk.paths.prefixes_db.mkdir(parents=True)
    window = desk.open()
    qtbot.waitUntil(lambda: window.centre.notification_bar.notice is not None, timeout=WAIT_MS)
    notice = window.centre.notification_bar.notice
    assert notice is not None
    assert (notice.level, notice.title) == (Level.WARNING, "The prefix cache")
    assert notice.message.endswith(".")


def test_a_reply_that_an_earlier_process_left_is_shown_as_interrupted(desk: Desk) -> None:
    desk.open()
    conversation = desk.store.create_conversation()
    question = desk.store.add_user_message(conversation.id, None, "Why?")
    reply = desk.store.begin_reply(conversation.id, question.id, "a model")
    desk.store.save_partial(reply.id, "Because of")
    desk.close()
    window = desk.open()
    last = window.chat.session.messages[-1]
    assert (last.text, last.state) == ("Because of", MessageState.INTERRUPTED)
    assert window.view.message_ids == [question.id, reply.id]


def test_the_look_is_remembered(desk: Desk) -> None:
    window = desk.open()
    window._look.choose("dark")
    assert Theme.current().is_dark
    desk.close()
    Theme.current().set_choice("light")
    window = desk.open()
    assert Theme.current().is_dark
    assert window._menus.looks["dark"].isChecked()


def test_panes_can_be_hidden_and_stay_so(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    window.resize(1180, 700)
    qtbot.waitUntil(window.inspector.isVisible)
    window.top_bar.left_toggle.click()
    action(window, "Ctrl+Shift+B").trigger()
    assert window.conversations.isHidden() and window.side.isHidden()
    window.resize(1000, 700)
    desk.close()
    window = desk.open()
    assert window.conversations.isHidden() and window.side.isHidden()
    assert not window._menus.left_pane.isChecked()
    action(window, "Ctrl+F").trigger()
    assert window.conversations.isVisible()


def test_the_window_opens_with_damaged_files_and_says_so(desk: Desk) -> None:
    desk.paths.home.mkdir(parents=True)
    desk.paths.settings_file.write_text("theme = [")
    desk.paths.conversations_db.write_bytes(b"this is no database" * 100)
    window = desk.open()
    notices = window.centre.notification_bar._notices
    assert [notice.title for notice in notices] == [
        "Not all settings could be used",
        "The conversations were damaged",
    ]
    assert window.chat.session.conversation_id is not None
    assert list(desk.paths.home.glob("conversations.db.*"))


@pytest.mark.parametrize("number", [120, 50, 51, 1])
def test_long_conversations_show_their_end_and_load_what_came_before(
    desk: Desk, qtbot: QtBot, number: int
) -> None:
    window = desk.open()
    conversation = desk.store.create_conversation()
    parent = None
    ids = []
    for index in range(number):
        parent = desk.store.add_user_message(conversation.id, parent, f"Message {index}").id
        ids.append(parent)
    window.chat.switcher.open(conversation.id)
    assert window.view.message_ids == ids[-50:]
    while len(window.view.message_ids) < number:
        before = len(window.view.message_ids)
        window.view.earlier_requested.emit()
        assert len(window.view.message_ids) > before
    assert window.view.message_ids == ids


def test_text_pasted_in_one_very_long_line_becomes_a_document(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    for text in ("x" * 1_000_000, "y" * 30_000):
        mime = QMimeData()
        mime.setText(f"{text}\r\n")
        QGuiApplication.clipboard().setMimeData(mime)
        qtbot.keyClick(window.composer.edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert chips(window) == [("Pasted text", ChipState.READY), ("Pasted text 2", ChipState.READY)]
    first, second = desk.store.draft_attachments(window.chat.session.conversation_id)
    assert first.text == "x" * 1_000_000 + "\n"
    assert second.text == "y" * 30_000 + "\n"
    desk.close()
    assert [title for title, _ in chips(desk.open())] == ["Pasted text", "Pasted text 2"]


def test_escape_first_leaves_what_is_being_typed_and_then_stops(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    store, conversation_id = desk.store, window.chat.session.conversation_id
    store.add_user_message(conversation_id, None, "Question")
    window.chat.session.conversation_id = None
    window.chat.switcher.open(conversation_id)
    stop = action(window, "Esc")
    stopped: list[bool] = []
    stop.triggered.connect(lambda: stopped.append(True))

    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)

    def press_escape(widget: QWidget) -> None:
        stop.setEnabled(True)
        qtbot.keyClick(widget, Qt.Key.Key_Escape)

    search = window.conversations._search
    search.setFocus()
    qtbot.keyClicks(search, "zzz")
    press_escape(search)
    assert search.text() == "" and not stopped

    message = window.findChild(UserMessage)
    message.start_editing()
    press_escape(message.findChild(PromptEdit))
    assert message._editor is None and not stopped

    press_escape(search)
    assert len(stopped) == 1


def test_a_narrow_window_folds_its_panes_and_remembers_them_as_shown(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    window.resize(700, 500)
    qtbot.waitUntil(window.side.isHidden)
    assert (window.width(), window.height()) == (700, 500)
    assert not window.top_bar.right_toggle.isChecked() and window.conversations.isVisible()
    desk.close()
    window = desk.open()
    window.resize(1200, 700)
    qtbot.waitUntil(window.inspector.isVisible)


def test_the_welcome_fits_into_the_narrowest_window(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    window.resize(window.minimumSize())
    qtbot.waitUntil(window.side.isHidden)
    welcome = window.centre.welcome
    for has_models, has_model in ((False, False), (True, False), (True, True)):
        welcome.set_state(has_models=has_models, has_model=has_model, is_loading=False)
        needed = welcome.minimumSizeHint()
        assert needed.width() <= welcome.width()
        assert needed.height() <= welcome.height()


def test_a_conversation_is_deleted_with_a_profile_that_was_not_saved_yet(desk: Desk) -> None:
    window = desk.open()
    window.chat.session.set_draft("Something")
    window.profile.update(max_context=4_096)
    deleted_id = window.chat.session.conversation_id
    window.deletion.delete_open()
    assert window.chat.session.conversation_id != deleted_id
    assert window.profile.value.name == "Chat"
    window.deletion.undo()
    assert window.chat.session.conversation_id == deleted_id
    assert window.profile.value.max_context == 4_096


def test_a_new_conversation_that_is_still_unused_takes_the_profile_that_was_chosen_last(desk: Desk) -> None:
    window = desk.open()
    unused_id = window.chat.session.conversation_id
    window.profile.choose("Long document")
    conversation = window._store.create_conversation("Other")
    window._store.set_draft(conversation.id, "A draft")
    window.chat.switcher.open(conversation.id)
    window.profile.choose("Code")
    window.chat.switcher.new()
    assert window.chat.session.conversation_id == unused_id
    assert window.profile.value.name == "Code"


def test_the_names_in_the_top_bar_leave_room_for_each_other(desk: Desk, qtbot: QtBot) -> None:
    window = desk.open()
    window.top_bar.set_model(loaded_model(2, 1))
    window.profile.save_as("A profile with a long name, forty chars!")
    window.resize(window.minimumSize())
    qtbot.waitUntil(lambda: window.top_bar.width() <= window.minimumWidth())
    button = window.top_bar.profile_button
    assert window.top_bar.rect().contains(button.mapTo(window.top_bar, button.rect().bottomRight()))
    left = button.mapTo(window.top_bar, button.rect().topLeft()).x()
    model = window.top_bar.model_button
    assert model.mapTo(window.top_bar, model.rect().topRight()).x() < left
