from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage, QInputMethodEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QProgressBar, QToolButton
from pytestqt.qtbot import QtBot

from app.documents.encodings import ENCODINGS, encoding_label
from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.composer import Composer
from ui.chat.context_meter import Fill, fill_of
from ui.chat.document_card import DocumentCard

READY = AttachmentChip(4, "paper.pdf", "14 pages · 42,310 characters · 10,554 tokens")
READING = AttachmentChip(5, "book.epub", "Reading…", ChipState.READING, (3, 10))
FAILED = AttachmentChip(6, "scan.pdf", "", ChipState.FAILED, error="scan.pdf has no text.")
GUESSED = AttachmentChip(7, "old.txt", "1,310 characters", encoding="windows-1252")


def button(composer: Composer, name: str) -> QToolButton:
    return next(
        found
        for found in composer.findChildren(QToolButton)
        if found.accessibleName() == name and found.isVisible()
    )


def shown(composer: Composer) -> str:
    return "\n".join(label.text() for label in composer.findChildren(QLabel) if label.isVisible())


def chips(composer: Composer) -> list[DocumentCard]:
    return [chip for chip in composer.findChildren(DocumentCard) if not chip.isHidden()]


def paste(composer: Composer, mime: QMimeData) -> None:
    QGuiApplication.clipboard().setMimeData(mime)
    QTest.keyClick(composer.edit, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(composer.edit, event)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_submits_and_the_text_stays_until_it_is_taken(
    qtbot: QtBot, composer: Composer, key: Qt.Key
) -> None:
    QTest.keyClicks(composer.edit, "hello")
    with qtbot.waitSignal(composer.submitted) as sent:
        QTest.keyClick(composer.edit, key)
    assert sent.args == ["hello"]
    assert composer.text == "hello"
    composer.set_text("")
    assert composer.text == ""


def test_shift_enter_breaks_the_line(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.submitted)
    QTest.keyClicks(composer.edit, "a")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(composer.edit, "b")
    assert composer.text == "a\nb"
    assert spy.count() == 0


def test_enter_belongs_to_the_input_method_while_it_composes(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.submitted)
    QTest.keyClicks(composer.edit, "x")
    compose(composer, "に")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert spy.count() == 0
    compose(composer, "", commit="日本")
    assert composer.text == "x日本"
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert [spy.at(number)[0] for number in range(spy.count())] == ["x日本"]


def test_nothing_is_submitted_without_text_or_document(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.submitted)
    QTest.keyClicks(composer.edit, "  ")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert spy.count() == 0
    assert not button(composer, "Send message").isEnabled()
    composer.set_text("")
    composer.set_attachments([READY])
    assert button(composer, "Send message").isEnabled()
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert spy.count() == 1


def test_nothing_is_submitted_while_a_document_is_read(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.submitted)
    composer.set_attachments([READING])
    QTest.keyClicks(composer.edit, "x")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert spy.count() == 0
    assert "A document is still being read." in shown(composer)
    composer.set_attachments([READY])
    assert "A document is still being read." not in shown(composer)


def test_while_a_reply_is_written_one_may_type_on_and_stop_it(qtbot: QtBot, composer: Composer) -> None:
    submitted, stopped = QSignalSpy(composer.submitted), QSignalSpy(composer.stop_requested)
    composer.set_busy(True)
    QTest.keyClicks(composer.edit, "next")
    QTest.keyClick(composer.edit, Qt.Key.Key_Return)
    assert submitted.count() == 0
    assert composer.text == "next"
    assert "press Esc to stop" in shown(composer)
    QTest.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert stopped.count() == 1
    button(composer, "Stop the reply").click()
    assert stopped.count() == 2
    composer.set_busy(False)
    assert "press Esc to stop" not in shown(composer)
    button(composer, "Send message").click()
    assert submitted.count() == 1


def test_escape_stops_nothing_when_nothing_is_written(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.stop_requested)
    QTest.keyClick(composer.edit, Qt.Key.Key_Escape)
    assert spy.count() == 0


def test_only_the_user_s_changes_are_told(qtbot: QtBot, composer: Composer) -> None:
    spy = QSignalSpy(composer.text_edited)
    composer.set_text("a draft")
    assert spy.count() == 0
    QTest.keyClicks(composer.edit, "!")
    assert [spy.at(number)[0] for number in range(spy.count())] == ["a draft!"]


def test_typing_can_be_undone(qtbot: QtBot, composer: Composer) -> None:
    QTest.keyClicks(composer.edit, "abc")
    QTest.keyClick(composer.edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert composer.text == ""


def test_the_field_grows_with_its_lines_up_to_eight(qtbot: QtBot, composer: Composer) -> None:
    heights = []
    for lines in (1, 3, 8, 9, 40):
        composer.set_text("\n".join(["x"] * lines))
        heights.append(composer.edit.height())
    one, three, eight, nine, forty = heights
    line = composer.edit.fontMetrics().lineSpacing()
    assert three - one == pytest.approx(2 * line, abs=3)
    assert eight - one == pytest.approx(7 * line, abs=6)
    assert nine == forty <= one + 7 * line + 6
    composer.set_text("long words that wrap " * 20)
    assert composer.edit.height() > one


def test_pasted_files_are_handed_on(qtbot: QtBot, composer: Composer, tmp_path: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(tmp_path / "a.pdf"))])
    mime.setText("file:///a.pdf")
    with qtbot.waitSignal(composer.files_dropped) as pasted:
        paste(composer, mime)
    assert pasted.args == [[tmp_path / "a.pdf"]]
    assert composer.text == ""


def test_pasted_rich_text_comes_as_plain_text(qtbot: QtBot, composer: Composer) -> None:
    mime = QMimeData()
    mime.setHtml("<b>bold</b><img src='file:///x.png'>")
    mime.setText("bold\nline")
    paste(composer, mime)
    assert composer.text == "bold\nline"


def test_long_pasted_text_is_handed_on_as_a_document_and_shorter_text_is_not(
    qtbot: QtBot, composer: Composer
) -> None:
    mime = QMimeData()
    mime.setText("a long line of words\n" * 2_000)
    with qtbot.waitSignal(composer.long_text_pasted) as pasted:
        paste(composer, mime)
    assert pasted.args == [mime.text()]
    assert composer.text == ""
    mime = QMimeData()
    mime.setText("a long line of words\n" * 200)
    paste(composer, mime)
    assert composer.text == mime.text()


def test_long_text_can_be_put_into_the_field_all_the_same(qtbot: QtBot, composer: Composer) -> None:
    QTest.keyClicks(composer.edit, "Look: ")
    composer.insert_text("a long line of words\n" * 2_000)
    assert composer.text == "Look: " + "a long line of words\n" * 2_000


def test_a_pasted_image_is_refused_with_a_sentence(qtbot: QtBot, composer: Composer) -> None:
    mime = QMimeData()
    mime.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    paste(composer, mime)
    assert "Images cannot be read" in shown(composer)


def test_chips_say_what_is_known(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([READY, READING, FAILED])
    text = shown(composer)
    for words in (READY.title, READY.detail, READING.title, FAILED.title, "scan.pdf has no text."):
        assert words in text
    (bar,) = [bar for bar in composer.findChildren(QProgressBar) if bar.isVisible()]
    assert (bar.value(), bar.maximum()) == (3, 10)
    composer.set_attachments([])
    assert not chips(composer)


def test_chips_are_removed_and_reading_is_cancelled_by_key(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([READY, READING])
    spy = QSignalSpy(composer.attachment_removed)
    button(composer, "Remove paper.pdf").click()
    button(composer, "Stop reading book.epub").click()
    assert [spy.at(number)[0] for number in range(spy.count())] == [4, 5]


def test_a_chip_keeps_its_widget_while_it_is_read(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([READING])
    before = chips(composer)
    composer.set_attachments([AttachmentChip(5, "book.epub", "3 pages"), READY])
    assert chips(composer)[:1] == before
    assert "3 pages" in shown(composer)


def test_the_encoding_can_be_chosen_where_there_is_one(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([READY])
    composer.set_attachments([READY, GUESSED])
    plain, guessed = chips(composer)
    name = "Text encoding of old.txt: windows-1252"
    assert name not in [b.accessibleName() for b in plain.findChildren(QToolButton) if b.isVisible()]
    button(composer, name).click()
    (menu,) = guessed.findChildren(QMenu)
    actions = {action.text(): action for action in menu.actions()}
    assert list(actions) == [encoding_label(encoding) for encoding in ENCODINGS]
    assert [text for text, action in actions.items() if action.isChecked()] == [
        encoding_label("windows-1252")
    ]
    with qtbot.waitSignal(composer.encoding_changed) as chosen:
        actions[encoding_label("koi8-r")].trigger()
    assert chosen.args == [7, "koi8-r"]
    menu.close()


def test_many_documents_do_not_fill_the_window(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([AttachmentChip(n, f"document {n}.pdf", "x") for n in range(40)])
    qtbot.waitUntil(lambda: chips(composer)[-1].y() > 300)
    assert composer.heightForWidth(composer.width()) < 400
    bar = composer._documents.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0)


@pytest.mark.parametrize(
    ("used", "limit", "fill"),
    [(0, 8192, Fill.ROOM), (6000, 8192, Fill.ROOM), (7900, 8192, Fill.NEAR), (8192, 8192, Fill.NEAR)],
)
def test_the_meter_warns_near_the_limit(used: int, limit: int, fill: Fill) -> None:
    assert fill_of(used, limit) is fill


def test_tokens_and_context_are_shown_in_numbers(qtbot: QtBot, composer: Composer) -> None:
    composer.set_text("x")
    composer.set_token_count(312, 10_554)
    composer.set_context(3_410, 8_192)
    assert "312 + 10,554 tokens" in shown(composer)
    composer.set_token_count(0, 10_554)
    assert "+" not in shown(composer) and "10,554 tokens" in shown(composer)
    assert "3,410 of 8,192 in context" in shown(composer)
    composer.set_context(9_192, 8_192)
    assert "9,192 of 8,192 in context" in shown(composer)
    assert fill_of(9_192, 8_192) is Fill.OVER
    composer.set_context(None, None)
    assert "8,192" not in shown(composer)


def test_a_hint_has_the_whole_width_beside_the_counts(qtbot: QtBot, composer: Composer) -> None:
    composer.set_token_count(3, 0)
    composer.set_context(9_192, 8_192)
    composer.set_hint(
        "It does not fit: that is a long sentence about what helps and what does not.", is_error=True
    )
    assert "It does not fit" in shown(composer) and "3 tokens" in shown(composer)
    qtbot.waitUntil(lambda: composer._hint_line.width() > composer._frame.width() - 40)
    composer.set_hint("")
    assert "It does not fit" not in shown(composer) and "3 tokens" in shown(composer)


def test_attaching_is_asked_for(qtbot: QtBot, composer: Composer) -> None:
    with qtbot.waitSignal(composer.attach_requested):
        button(composer, "Attach documents").click()


def test_the_field_and_its_button_stay_where_they_are_when_a_hint_comes(composer: Composer) -> None:
    def place() -> tuple[int, int]:
        QApplication.processEvents()
        return composer._frame.y(), composer.sizeHint().height()

    before = place()
    composer.set_hint("Choose a model first.", is_error=True)
    assert place() == before
    composer.set_hint("")
    composer.set_context(10, 100, "The oldest turn will be left out.")
    assert "left out" in shown(composer)
    assert place()[0] == before[0]
