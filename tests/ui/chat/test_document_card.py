"""Documents above the field: what they cost, and how they are read."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Qt
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QProgressBar, QToolButton
from pytestqt.qtbot import QtBot

from app.document_cost import DocumentCost, WayCost
from app.document_size import DocumentSize
from app.documents.ways import DocumentWay
from ui.chat.asked_documents import AskedDocument
from ui.chat.attachments import AheadWords, AttachmentChip
from ui.chat.composer import Composer
from ui.chat.document_ways import WayButton

REFUSAL = "It has 60,000 tokens, and there is room for 7,500."
COST = DocumentCost(
    DocumentSize(None, 42_000, 60_000),
    780_000_000,
    (
        WayCost(DocumentWay.WHOLE, 0, 900.0, REFUSAL),
        WayCost(DocumentWay.SEGMENTS, 34, 540.0),
        WayCost(DocumentWay.LOOK_UP, 0, 1.0),
    ),
    DocumentWay.SEGMENTS,
    "It does not fit whole.",
)
BOOK = AttachmentChip(1, "book.epub", "60,000 tokens", attachment_id=7, cost=COST, way=DocumentWay.SEGMENTS)
PAGE = AttachmentChip(
    2,
    "page.txt",
    "600 tokens",
    attachment_id=8,
    way=DocumentWay.WHOLE,
    ahead=AheadWords("Read 100 of 600 tokens, about 5 s left", "Read 100 of 600", (100, 600)),
)


def buttons(composer: Composer) -> dict[str, QAbstractButton]:
    found = composer.findChildren(QAbstractButton)
    return {button.accessibleName(): button for button in found if button.isVisible()}


def shown(composer: Composer) -> str:
    return "\n".join(label.text() for label in composer.findChildren(QLabel) if label.isVisible())


def test_each_way_says_what_it_costs_and_why_it_cannot_be(composer: Composer) -> None:
    composer.set_attachments([BOOK])
    found = buttons(composer)
    whole = found["Read whole: does not fit – book.epub"]
    segments = found["In segments: 34 segments, about 9\N{NO-BREAK SPACE}min – book.epub"]
    look_up = found["Look up: at once – book.epub"]
    assert [each.isEnabled() for each in (whole, segments, look_up)] == [False, True, True]
    assert [each.isChecked() for each in (whole, segments, look_up)] == [False, True, False]
    assert REFUSAL in whole.toolTip()
    assert "It does not fit whole." in shown(composer)


def test_a_narrow_button_says_how_long_its_way_takes(qtbot: QtBot) -> None:
    button = WayButton(DocumentWay.SEGMENTS)
    qtbot.addWidget(button)
    words = "11 segments, about 10 min"
    button.show_cost("paper.pdf", words, "")
    button.resize(button.sizeHint())
    assert button.shown_cost == words
    button.resize(button.width() - 30, button.height())
    assert button.shown_cost == "about 10 min"
    assert words in button.toolTip()


def test_a_way_is_chosen_with_the_mouse_and_with_the_keyboard(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([BOOK])
    spy = QSignalSpy(composer.way_chosen)
    found = buttons(composer)
    QTest.mouseClick(found["Look up: at once – book.epub"], Qt.MouseButton.LeftButton)
    segments = next(button for name, button in found.items() if name.startswith("In segments"))
    segments.setFocus()
    QTest.keyClick(segments, Qt.Key.Key_Space)
    assert [spy.at(number) for number in range(spy.count())] == [
        [7, DocumentWay.LOOK_UP],
        [7, DocumentWay.SEGMENTS],
    ]


def test_how_far_a_document_is_read_is_shown_with_a_bar(composer: Composer) -> None:
    composer.set_attachments([PAGE])
    assert "Read 100 of 600 tokens, about 5 s left" in shown(composer)
    (bar,) = (bar for bar in composer.findChildren(QProgressBar) if bar.isVisible())
    assert (bar.value(), bar.maximum()) == (100, 600)
    composer.set_attachments([dataclasses.replace(PAGE, ahead=AheadWords("Read. At once.", "Read"))])
    assert "Read. At once." in shown(composer) and not bar.isVisible()


def test_of_several_documents_one_is_open_and_the_others_are_lines(composer: Composer) -> None:
    composer.set_attachments([BOOK])
    composer.set_attachments([BOOK, PAGE])
    assert "600 tokens" in shown(composer) and "60,000 tokens" not in shown(composer)
    assert "34 segments, about 9" in shown(composer)
    buttons(composer)["Show how book.epub is read"].click()
    assert "60,000 tokens" in shown(composer) and "about 5 s left" not in shown(composer)
    assert "Read 100 of 600" in shown(composer)


def test_the_text_of_a_document_can_be_asked_for(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([BOOK])
    with qtbot.waitSignal(composer.text_wanted) as wanted:
        buttons(composer)["View the text of book.epub"].click()
    assert wanted.args == [7]


def test_only_pasted_text_can_be_put_into_the_message(qtbot: QtBot, composer: Composer) -> None:
    composer.set_attachments([BOOK])
    assert "Put book.epub into the message" not in buttons(composer)
    composer.set_attachments([dataclasses.replace(BOOK, title="Pasted text", is_pasted=True)])
    with qtbot.waitSignal(composer.as_text_wanted) as wanted:
        buttons(composer)["Put Pasted text into the message"].click()
    assert wanted.args == [1]


def test_documents_that_the_next_question_is_read_against_are_named_with_a_menu(
    qtbot: QtBot, composer: Composer
) -> None:
    composer.set_asked_documents([AskedDocument(7, "book.epub", DocumentWay.LOOK_UP, COST)])
    assert "book.epub: looked up, at once. Change how it is read" in buttons(composer)
    menu = composer._asked.menu(0)
    actions = {action.text(): action for action in menu.actions()}
    assert [text for text, action in actions.items() if action.isChecked()] == ["Look up  (at once)"]
    assert not actions["Read whole"].isEnabled()
    with qtbot.waitSignal(composer.way_chosen) as chosen:
        next(action for text, action in actions.items() if text.startswith("In segments")).trigger()
    assert chosen.args == [7, DocumentWay.SEGMENTS]
    with qtbot.waitSignal(composer.text_wanted) as wanted:
        actions["View text"].trigger()
    assert wanted.args == [7]
    composer.set_asked_documents([])
    assert composer._asked.isHidden()


def test_a_document_that_is_asked_about_no_more_is_out_of_sight_at_once(composer: Composer) -> None:
    """Even while a menu is open, before anything is deleted."""
    first, second = (AskedDocument(n, f"{n}.pdf", DocumentWay.LOOK_UP, None) for n in (1, 2))
    composer.set_asked_documents([first, second])
    composer.set_asked_documents([first])
    found = composer._asked.findChildren(QToolButton)
    assert [each.text() for each in found if not each.isHidden()] == ["1.pdf: looked up ▾"]


def test_of_many_documents_for_the_next_question_a_few_are_named_and_the_rest_counted(
    composer: Composer,
) -> None:
    composer.set_asked_documents(
        [AskedDocument(n, f"{n}.py", DocumentWay.LOOK_UP, None) for n in range(1, 31)]
    )
    assert len(composer._asked.focus_stops) == 4
    assert "With your question (26 more):" in shown(composer)
