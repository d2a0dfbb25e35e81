"""What stands under an answer: sources, coverage, and what can be done about it."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.documents.places import Place
from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind
from app.reading.shown import NO_EVIDENCE, Coverage, Evidence, ShownPassage, ShownSegment
from tests.ui.chat.conftest import conversation, reply, user
from ui.chat.coverage_strip import CellKind, CoverageStrip, cell_kind, cell_words
from ui.chat.evidence_panel import EvidencePanel
from ui.chat.passage_button import PassageButton
from ui.chat.passage_list import PassageFold
from ui.chat.text_view import TextView
from ui.chat.view import ChatView

SEGMENTS = (
    ReadSegment(0, 10, SegmentState.READ, "Owls hunt at night."),
    ReadSegment(10, 20, SegmentState.READ),
    ReadSegment(20, 30, SegmentState.FAILED, error="There was not enough memory."),
    ReadSegment(30, 40),
)


def passage(
    number: int, kind: SourceKind = SourceKind.NOTED, *, is_cited: bool = False, share: float | None = None
) -> ShownPassage:
    source = Source(number, 7, number * 10, number * 10 + 5, kind, is_cited, share)
    return ShownPassage(source, "birds.pdf", Place(number + 1, "Owls"), f"Words of {number}")


def coverage(text: str = "", segments: tuple[ReadSegment, ...] = SEGMENTS) -> Coverage:
    states = [each.state for each in segments]
    counts = len(segments), states.count(SegmentState.READ), states.count(SegmentState.FAILED)
    reading = Reading(3, 1, 7, DocumentWay.SEGMENTS, "A model", text, *counts)
    return Coverage(reading, "birds.pdf", tuple(ShownSegment(each, Place(4, "Owls")) for each in segments))


@pytest.fixture
def panel(qtbot: QtBot) -> EvidencePanel:
    made = EvidencePanel()
    qtbot.addWidget(made)
    made.resize(600, 400)
    return made


def show(panel: EvidencePanel, evidence: Evidence) -> None:
    panel.show_evidence(evidence)
    panel.show()


def names(panel: QWidget) -> list[str]:
    return [each.accessibleName() for each in panel.findChildren(PassageButton) if each.isVisible()]


def words(panel: QWidget) -> str:
    return "\n".join(each.text() for each in panel.findChildren(QLabel) if each.isVisible())


def named_button(panel: QWidget, text: str) -> QAbstractButton | None:
    buttons: list[QAbstractButton] = [*panel.findChildren(QPushButton), *panel.findChildren(QToolButton)]
    return next((each for each in buttons if each.text() == text and each.isVisible()), None)


def press(panel: QWidget, text: str) -> None:
    button = named_button(panel, text)
    assert button is not None
    button.click()


def test_cited_sources_are_in_sight_with_place_and_words_and_open_their_passage(
    panel: EvidencePanel,
) -> None:
    show(panel, Evidence((passage(3, is_cited=True), passage(1, is_cited=True), passage(2))))
    assert names(panel) == [
        "Source 1, page 2, Owls: Words of 1",
        "Source 3, page 4, Owls: Words of 3",
    ]
    spy = QSignalSpy(panel.passage_requested)
    panel.findChildren(PassageButton)[1].click()
    assert [list(spy.at(0))] == [[7, 30, 35]]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_keys_open_a_source(panel: EvidencePanel, key: Qt.Key) -> None:
    show(panel, Evidence((passage(3, is_cited=True),)))
    spy = QSignalSpy(panel.passage_requested)
    QTest.keyClick(panel.findChild(PassageButton), key)
    assert [list(spy.at(0))] == [[7, 30, 35]]


def test_many_sources_are_folded_behind_the_first(panel: EvidencePanel) -> None:
    show(panel, Evidence(tuple(passage(number, is_cited=True) for number in range(1, 11))))
    assert len(names(panel)) == 6
    press(panel, "4 more")
    assert len(names(panel)) == 10


def test_notes_that_the_answer_does_not_cite_are_folded(panel: EvidencePanel) -> None:
    show(panel, Evidence((passage(1, is_cited=True), passage(2), passage(4))))
    press(panel, "2 notes that the answer does not cite")
    assert [name.split(",")[0] for name in names(panel)] == ["Source 1", "Source 2", "Source 4"]


def test_passages_that_were_looked_at_are_said_and_open_when_asked(panel: EvidencePanel) -> None:
    show(panel, Evidence((passage(1, SourceKind.LOOKED_AT), passage(2, SourceKind.LOOKED_AT))))
    assert names(panel) == []
    press(panel, "Looked at 2 passages")
    assert len(names(panel)) == 2


def test_a_passage_that_was_looked_at_and_is_cited_is_shown_once(panel: EvidencePanel) -> None:
    cited = passage(1, SourceKind.LOOKED_AT, is_cited=True)
    show(panel, Evidence((cited,)))
    assert len(names(panel)) == 1 and not panel.findChildren(PassageFold)
    panel.hide()
    show(panel, Evidence((cited, passage(2, SourceKind.LOOKED_AT))))
    press(panel, "Looked at 1 more passage")
    assert [name.split(",")[0] for name in names(panel)] == ["Source 1", "Source 2"]


def test_each_source_names_its_document_where_there_are_several(panel: EvidencePanel) -> None:
    show(panel, Evidence((passage(1, is_cited=True),)))
    assert names(panel) == ["Source 1, page 2, Owls: Words of 1"]
    panel.hide()
    show(panel, Evidence((passage(1, is_cited=True),), names_documents=True))
    assert names(panel) == ["Source 1, birds.pdf, page 2, Owls: Words of 1"]


def test_reading_on_is_offered_once_for_all_documents(panel: EvidencePanel) -> None:
    done, begun = coverage("[1] Owls hunt.", SEGMENTS[:2]), coverage("", (SEGMENTS[3],) * 2)
    begun = dataclasses.replace(begun, reading=dataclasses.replace(begun.reading, id=4, attachment_id=8))
    more = dataclasses.replace(begun, reading=dataclasses.replace(begun.reading, id=5, attachment_id=9))
    show(panel, Evidence((), (done, begun, more), names_documents=True))
    shown = [each.text() for each in panel.findChildren(QPushButton) if each.isVisible()]
    assert shown == ["Continue reading", "Answer from what was read"]
    assert words(panel).count("birds.pdf") == 3


def test_a_look_up_that_found_nothing_is_said(panel: EvidencePanel) -> None:
    nothing = coverage("Nothing was found.", ())
    reading = dataclasses.replace(nothing.reading, way=DocumentWay.LOOK_UP)
    show(panel, Evidence((), (dataclasses.replace(nothing, reading=reading),)))
    assert words(panel).splitlines() == [
        "Nothing that fits the question was found in “birds.pdf”.",
        "The answer may be made up.",
    ]


def test_attention_is_folded_and_is_called_no_proof(panel: EvidencePanel) -> None:
    show(panel, Evidence((passage(0, SourceKind.ATTENDED, share=0.31),)))
    assert "proof" not in words(panel)
    press(panel, "What the answer read")
    assert "This is an indication, not a proof." in words(panel)
    assert names(panel) == ["31% of the attention, page 1, Owls: Words of 0"]


def test_unfinished_reading_can_go_on_or_be_answered_from(panel: EvidencePanel) -> None:
    show(panel, Evidence((), (coverage(),)))
    assert "Read 2 of 4 segments. 1 could not be read." in words(panel)
    on, now = QSignalSpy(panel.continue_requested), QSignalSpy(panel.answer_now_requested)
    press(panel, "Continue reading")
    press(panel, "Answer from what was read")
    assert (on.count(), now.count()) == (1, 1)


def test_an_answer_from_a_part_says_so_and_the_rest_can_be_read(panel: EvidencePanel) -> None:
    show(panel, Evidence((), (coverage("[1] Owls hunt."),)))
    assert "The answer does not know the others." in words(panel)
    assert named_button(panel, "Continue reading") is not None
    assert named_button(panel, "Answer from what was read") is None


def test_a_former_answer_says_what_was_read_after_it(panel: EvidencePanel) -> None:
    read = coverage("[1] Owls hunt.", SEGMENTS[:2])
    show(panel, Evidence((), (read,), num_known=1))
    assert "This answer does not know 1 of them, which was read later." in words(panel)
    show(panel, Evidence((), (read,), num_known=2))
    assert words(panel) == "Read 2 of 2 segments."


def test_what_was_read_whole_offers_nothing_more(panel: EvidencePanel) -> None:
    show(panel, Evidence((), (coverage("[1] Owls hunt.", SEGMENTS[:2]),)))
    assert words(panel) == "Read 2 of 2 segments."
    assert not [each for each in panel.findChildren(QPushButton) if each.isVisible()]


def test_nothing_can_be_read_on_while_a_reply_is_written(panel: EvidencePanel) -> None:
    show(panel, Evidence((), (coverage(),)))
    panel.set_actions_enabled(False)
    assert not any(each.isEnabled() for each in panel.findChildren(QPushButton))


def test_the_keyboard_stays_on_its_cell_while_segments_are_read(panel: EvidencePanel, qtbot: QtBot) -> None:
    show(panel, Evidence((), (coverage("", SEGMENTS[:1] + (SEGMENTS[3],) * 3),), is_running=True))
    strip = panel.findChild(CoverageStrip)
    panel.activateWindow()
    strip.setFocus()
    qtbot.waitUntil(strip.hasFocus)
    QTest.keyClick(strip, Qt.Key.Key_Right)
    show(panel, Evidence((), (coverage(""),), is_running=True))
    show(panel, Evidence((passage(1, is_cited=True),), (coverage("[1] Owls hunt."),)))
    assert panel.findChildren(CoverageStrip) == [strip] and strip.hasFocus()
    assert strip.accessibleDescription() == "Segment 2 (page 4, Owls) says nothing about the question."
    assert "Read 2 of 4 segments." in words(panel)
    assert named_button(panel, "Continue reading") is not None


def test_an_answer_without_documents_has_nothing_below_it(panel: EvidencePanel) -> None:
    panel.show_evidence(Evidence((passage(1, is_cited=True),)))
    panel.show_evidence(NO_EVIDENCE)
    assert panel.isHidden()


def test_cells_tell_what_came_of_each_segment() -> None:
    shown = coverage().segments
    assert [cell_kind(each) for each in shown] == [
        CellKind.SAID,
        CellKind.SILENT,
        CellKind.FAILED,
        CellKind.UNREAD,
    ]
    assert cell_words(shown[0], 1) == (
        "Segment 1 (page 4, Owls) says something about the question.\nOwls hunt at night."
    )
    assert cell_words(shown[2], 3).endswith("could not be read.\nThere was not enough memory.")


@pytest.fixture
def strip(qtbot: QtBot) -> CoverageStrip:
    made = CoverageStrip()
    made.show_coverage(coverage())
    qtbot.addWidget(made)
    made.resize(300, 18)
    made.show()
    return made


def test_cells_differ_by_more_than_their_colour(strip: CoverageStrip, either_theme: str) -> None:
    image = strip.grab().toImage().convertToFormat(strip.grab().toImage().Format.Format_Grayscale8)
    ground = image.pixelColor(299, 8).value()

    def ink(index: int, point: QPoint) -> bool:
        rect = strip.cell_rect(index)
        return abs(image.pixelColor(rect.topLeft() + point).value() - ground) > 25

    centre, low = QPoint(11, 8), QPoint(11, 14)
    assert [ink(index, centre) for index in range(4)] == [True, False, True, False]
    assert [ink(index, low) for index in range(2)] == [True, True]


def test_a_click_and_the_keyboard_open_a_segment(strip: CoverageStrip, qtbot: QtBot) -> None:
    spy = QSignalSpy(strip.chosen)
    QTest.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.cell_rect(2).center())
    QTest.keyClick(strip, Qt.Key.Key_Right)
    QTest.keyClick(strip, Qt.Key.Key_Return)
    QTest.keyClick(strip, Qt.Key.Key_Home)
    QTest.keyClick(strip, Qt.Key.Key_Space)
    assert [spy.at(place)[0] for place in range(spy.count())] == [2, 3, 0]


def test_a_screen_reader_is_told_of_the_cell_with_the_keyboard(strip: CoverageStrip) -> None:
    QTest.keyClick(strip, Qt.Key.Key_End)
    interface = QAccessible.queryAccessibleInterface(strip)
    assert interface.text(QAccessible.Text.Name) == "Segments of birds.pdf"
    assert "Segment 4 (page 4, Owls) has not been read." in interface.text(QAccessible.Text.Description)


def test_hundreds_of_segments_wrap_and_stay_apart(qtbot: QtBot) -> None:
    strip = CoverageStrip()
    strip.show_coverage(coverage("x", SEGMENTS[:1] * 400))
    qtbot.addWidget(strip)
    strip.resize(300, strip.heightForWidth(300))
    rects = [strip.cell_rect(index) for index in range(400)]
    assert all(strip.rect().contains(rect) for rect in rects)
    assert not any(first.intersects(second) for first, second in pairwise(rects))
    assert strip.cell_at(rects[399].center()) == 399


def test_a_number_in_an_answer_opens_its_source(view: ChatView, qtbot: QtBot) -> None:
    view.show_messages([user(1, "Who?"), reply(2, "Owls [3], not [9].")], has_earlier=False)
    view.show_evidence({2: Evidence((passage(3, is_cited=True),))})
    text = next(each for each in view.findChildren(TextView) if "Owls" in each.toPlainText())
    spy, others = QSignalSpy(view.passage_requested), QSignalSpy(view.link_activated)
    hrefs = [
        each.format.anchorHref() for each in text.document().begin().textFormats() if each.format.isAnchor()
    ]
    assert len(hrefs) == 1
    text.link_activated.emit(hrefs[0])
    assert list(spy.at(0)) == [7, 30, 35]
    assert others.count() == 0


def test_evidence_holds_for_answers_that_are_shown_later(view: ChatView, qtbot: QtBot) -> None:
    view.show_evidence({2: Evidence((passage(1, is_cited=True),))})
    view.show_messages(conversation(4), has_earlier=False)
    qtbot.waitUntil(lambda: len(names(view)) == 1)


def test_tab_goes_through_what_stands_under_an_answer(view: ChatView, qtbot: QtBot) -> None:
    view.show_messages([user(1, "Who?"), reply(2, "Owls [1].")], has_earlier=False)
    view.show_evidence({2: Evidence((passage(1, is_cited=True),), (coverage(),))})
    stops = view._widgets[-1].focus_stops
    kinds = [type(each).__name__ for each in stops]
    assert kinds[:5] == ["TextView", "PassageButton", "CoverageStrip", "QPushButton", "QPushButton"]
    stops[0].setFocus()
    taken: list[QWidget] = [stops[0]]
    for _ in range(5):
        QTest.keyClick(view.window().focusWidget(), Qt.Key.Key_Tab)
        taken.append(view.window().focusWidget())
    assert taken == [stops[0], *stops[:5]]  # the link in the text comes first
