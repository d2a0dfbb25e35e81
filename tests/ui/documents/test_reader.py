"""Documents beside the conversation, in the whole window."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.documents.document import Document
from app.documents.ways import DocumentWay
from app.reading.records import ReadSegment, SegmentState, Source, SourceKind
from app.segments.progress import SegmentProgress
from app.store.conversations import ConversationStore
from app.store.db import open_store
from app.store.records import MessageState
from tests.ui.conftest import Desk
from tests.ui.test_main_window import unnamed
from ui.chat.coverage_strip import CoverageStrip
from ui.chat.passage_button import PassageButton
from ui.main_window import MainWindow
from ui.notifications import Notice

PARAGRAPHS = [f"Paragraph {number} says that owl {number} hunts at night." for number in range(400)]
TEXT = "# Owls\n\n" + "\n\n".join(PARAGRAPHS[:200]) + "\n\n# Larks\n\n" + "\n\n".join(PARAGRAPHS[200:])
LARKS = TEXT.index("# Larks")
SAID = TEXT.index("Paragraph 300 ")


def fill(store: ConversationStore) -> int:
    """Store a question about a document with an answer and its sources; return the attachment's id."""
    conversation_id = store.create_conversation("Birds").id
    document = Document("birds.pdf", "/tmp/birds.pdf", "pdf", TEXT, num_pages=2, page_starts=(0, LARKS))
    attachment = store.add_attachment(conversation_id, document)
    question = store.add_user_message(conversation_id, None, "What does owl 300 do?", [attachment.id])
    segments = [ReadSegment(0, LARKS), ReadSegment(LARKS, len(TEXT))]
    reading = store.begin_reading(question.id, attachment.id, DocumentWay.SEGMENTS, "A model", segments)
    note = ReadSegment(LARKS, len(TEXT), SegmentState.READ, "Owl 300 hunts.")
    store.save_segment(reading.id, 1, note)
    reply = store.begin_reply(conversation_id, question.id, "A model")
    source = Source(1, attachment.id, SAID, SAID + len(PARAGRAPHS[300]), SourceKind.NOTED, is_cited=True)
    store.finish_reply(reply.id, "It hunts [1].", MessageState.STOPPED, None, sources=[source])
    return attachment.id


@pytest.fixture
def attachment_id(desk: Desk) -> int:
    store, _ = open_store(desk.paths.conversations_db)
    made = fill(store)
    store.close()
    return made


def source_button(window: MainWindow, qtbot: QtBot) -> PassageButton:
    qtbot.waitUntil(lambda: bool(window.view.findChildren(PassageButton)))
    return window.view.findChildren(PassageButton)[0]


def escape() -> None:
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)


def test_a_source_opens_its_passage_and_escape_brings_back_what_was_there(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    window.resize(1400, 800)
    qtbot.waitUntil(window.inspector.isVisible)
    window.composer.setFocus()
    source_button(window, qtbot).click()
    reader = window.side.reader
    qtbot.waitUntil(reader.isVisible)
    assert not window.inspector.isVisible()
    qtbot.waitUntil(lambda: reader.text.is_seen(SAID))
    marks = reader.text.page.extraSelections()
    assert [mark.cursor.selectedText() for mark in marks] == [PARAGRAPHS[300]]
    qtbot.waitUntil(reader.text.page.hasFocus)
    escape()
    assert window.inspector.isVisible() and not reader.isVisible()
    assert window.composer.edit.hasFocus()


def test_sources_and_coverage_are_there_after_a_restart(desk: Desk, attachment_id: int, qtbot: QtBot) -> None:
    for _ in range(2):
        window = desk.open()
        name = source_button(window, qtbot).accessibleName()
        assert name == f"Source 1, page 2, Larks: {PARAGRAPHS[300]}"
        strip = window.view.findChild(CoverageStrip)
        assert "Segment 1 (page 1, Owls) has not been read." in strip.accessibleDescription()
        desk.close()


def test_escape_in_the_search_closes_only_that_and_ctrl_f_finds_in_the_document(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    window.reader.open(attachment_id)
    reader = window.side.reader
    qtbot.waitUntil(reader.text.page.hasFocus)
    QTest.keyClick(reader.text.page, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert reader.find_bar.field.hasFocus()
    QTest.keyClicks(reader.find_bar.field, "OWL 350 hunts")
    place = TEXT.index("owl 350")
    qtbot.waitUntil(lambda: reader.text.is_seen(place))
    assert reader.find_bar._count.text() == "1 of 1"
    escape()
    assert reader.find_bar.isHidden() and reader.isVisible()
    escape()
    assert not reader.isVisible()


def test_enter_goes_from_place_to_place_and_round(desk: Desk, attachment_id: int, qtbot: QtBot) -> None:
    window = desk.open()
    window.reader.open(attachment_id)
    reader = window.side.reader
    reader.begin_search()
    QTest.keyClicks(reader.find_bar.field, "Paragraph 1 ")
    QTest.keyClicks(reader.find_bar.field, "says")
    qtbot.waitUntil(lambda: reader.find_bar._count.text() == "1 of 1")
    reader.find_bar.field.setText("owl 39")
    qtbot.waitUntil(lambda: reader.find_bar._count.text() == "1 of 11")
    QTest.keyClick(reader.find_bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert reader.find_bar._count.text() == "11 of 11"
    QTest.keyClick(reader.find_bar.field, Qt.Key.Key_Return)
    assert reader.find_bar._count.text() == "1 of 11"
    reader.find_bar.field.setText("nothing like it")
    qtbot.waitUntil(lambda: reader.find_bar._count.text() == "Not found")


def test_a_heading_of_the_contents_is_gone_to(desk: Desk, attachment_id: int, qtbot: QtBot) -> None:
    window = desk.open()
    window.reader.open(attachment_id)
    reader = window.side.reader
    model = reader.outline.model()
    assert [model.index(row, 0).data() for row in range(model.rowCount())] == ["Owls", "Larks"]
    reader.outline.setCurrentIndex(model.index(1, 0))
    QTest.keyClick(reader.outline, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: reader.text.is_seen(LARKS))
    assert reader._place.text() == "p. 2, Larks"


def test_a_hidden_side_pane_is_hidden_again_after_a_document(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    window.top_bar.right_toggle.setChecked(False)
    window.reader.open(attachment_id)
    assert window.side.isVisible()
    window.reader.close()
    assert not window.side.isVisible()
    window.reader.open(attachment_id)
    window.top_bar.right_toggle.setChecked(False)
    assert not window.reader.is_open


def test_the_inspector_has_its_width_again_after_a_document_and_a_restart(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    window.resize(1400, 800)
    qtbot.waitUntil(lambda: window.width() == 1400)
    width = window.side.width()
    window.reader.open(attachment_id)
    qtbot.waitUntil(lambda: window.side.width() > width)
    window.reader.close()
    qtbot.waitUntil(lambda: window.side.width() == width)
    window.reader.open(attachment_id)
    desk.close()
    window = desk.open()
    window.resize(1400, 800)
    qtbot.waitUntil(window.inspector.isVisible)
    qtbot.waitUntil(lambda: abs(window.side.width() - width) < 3)


def test_a_narrow_window_makes_room_for_a_document(desk: Desk, attachment_id: int, qtbot: QtBot) -> None:
    window = desk.open()
    window.resize(700, 600)
    qtbot.waitUntil(lambda: window.side.isHidden())
    window.reader.open(attachment_id)
    qtbot.waitUntil(lambda: window.side.isVisible())
    assert not window.conversations.isVisible()
    assert window.side.width() >= window.side.minimumWidth()
    assert window.centre.width() >= window.centre.minimumWidth()
    window.reader.close()
    assert window.conversations.isVisible() and not window.side.isVisible()
    window.resize(1400, 600)
    qtbot.waitUntil(window.inspector.isVisible)


def test_a_document_stays_when_its_window_becomes_narrow(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    window.resize(1400, 600)
    qtbot.waitUntil(window.inspector.isVisible)
    window.reader.open(attachment_id)
    window.resize(800, 600)
    qtbot.waitUntil(lambda: window.conversations.isHidden())
    assert window.side.reader.isVisible()
    window.reader.close()
    window.resize(1400, 600)
    qtbot.waitUntil(lambda: window.conversations.isVisible() and window.inspector.isVisible())
    window.resize(800, 600)
    qtbot.waitUntil(lambda: window.side.isHidden())


def test_settings_take_the_place_of_a_document(desk: Desk, attachment_id: int) -> None:
    window = desk.open()
    window.reader.open(attachment_id)
    window._go_to_settings()
    assert window.inspector.chat.isVisible()


def test_another_conversation_closes_the_document(desk: Desk, attachment_id: int) -> None:
    window = desk.open()
    window.reader.open(attachment_id)
    window.chat.switcher.new()
    assert not window.reader.is_open


def test_a_document_that_is_gone_is_said_to_be(desk: Desk, attachment_id: int) -> None:
    window = desk.open()
    told: list[Notice] = []
    window._notifications.posted.connect(told.append)
    window.reader.open(attachment_id + 1)
    assert not window.reader.is_open
    assert told[-1].title == "The document cannot be shown"


def test_everything_beside_a_document_has_a_name_for_screen_readers(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    source_button(window, qtbot)
    window.reader.open(attachment_id)
    window.side.reader.begin_search()
    assert unnamed(window) == []


def test_reading_on_asks_for_another_answer(desk: Desk, attachment_id: int, qtbot: QtBot) -> None:
    window = desk.open()
    source_button(window, qtbot)
    asked: list[tuple[int, bool]] = []
    window.chat.session.regenerate = (  # type: ignore[method-assign]
        lambda message_id, settings: asked.append((message_id, settings.reads_on))
    )
    window.chat.replies.is_free = lambda: True  # type: ignore[method-assign]
    for text in ("Continue reading", "Answer from what was read"):
        next(each for each in window.view.findChildren(QPushButton) if each.text() == text).click()
    answer = window.chat.session.messages[-1].id
    assert asked == [(answer, True), (answer, False)]


def test_segments_show_under_the_answer_while_they_are_read(
    desk: Desk, attachment_id: int, qtbot: QtBot
) -> None:
    window = desk.open()
    store, session, stream = desk.store, window.chat.session, window.chat.stream
    assert session.conversation_id is not None
    question = store.add_user_message(session.conversation_id, session.leaf_id, "And owl 5?", [])
    stream.conversation_id = session.conversation_id  # as if it had been asked for
    reply = store.begin_reply(session.conversation_id, question.id, "A model")
    window._engine.reply_started.emit(reply)
    segments = [ReadSegment(0, LARKS), ReadSegment(LARKS, len(TEXT))]
    reading = store.begin_reading(question.id, attachment_id, DocumentWay.SEGMENTS, "A model", segments)
    window._engine.prefill_progress.emit(reply.id, SegmentProgress(1, 2, "birds.pdf"))

    def running() -> str:
        strips = window.view.findChildren(CoverageStrip)
        return max(strips, key=lambda each: each.mapToGlobal(QPoint(0, 0)).y()).accessibleDescription()

    qtbot.waitUntil(lambda: len(window.view.findChildren(CoverageStrip)) == 2)
    assert "has not been read" in running()
    store.save_segment(reading.id, 0, ReadSegment(0, LARKS, SegmentState.READ, "Owl 5 hunts."))
    window._engine.prefill_progress.emit(reply.id, SegmentProgress(2, 2, "birds.pdf"))
    qtbot.waitUntil(lambda: running().endswith("Owl 5 hunts."))
