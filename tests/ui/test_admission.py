from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from engine.admission import (
    AdmissionError,
    Choice,
    DropTurns,
    InSegments,
    LongerContext,
    LookUp,
    LowerPrecision,
    PackedWeights,
    ReadWhole,
    ShorterContext,
    SmallerModel,
)
from engine.kv.precision import KVSpec
from ui.admission import RefusalPanel, choice_words, risk_words

CHOICES = (
    LowerPrecision(KVSpec.parse("k8v4; warm=2"), 20_000),
    ShorterContext(4_096),
    InSegments(3),
    LookUp(),
    ReadWhole(1_200),
    DropTurns(1),
    SmallerModel(1_500_000_000),
    LongerContext(6_144),
    PackedWeights(8_192),
)


def refusal(*choices: Choice, can_override: bool = True) -> AdmissionError:
    return AdmissionError(
        "It needs 3 GB and there are 2 GB.",
        needed_nbytes=3,
        available_nbytes=2,
        choices=choices,
        can_override=can_override,
    )


@pytest.fixture
def panel(qtbot: QtBot) -> RefusalPanel:
    panel = RefusalPanel("Send anyway…")
    qtbot.addWidget(panel)
    panel.resize(388, 200)
    return panel


def offered(panel: QWidget) -> list[QPushButton]:
    return [button for button in panel.findChildren(QPushButton) if not button.isHidden()]


def test_every_choice_is_a_button_that_says_what_it_does_and_tells_it(
    qtbot: QtBot, panel: RefusalPanel
) -> None:
    panel.show_refusal("Refused", refusal(*CHOICES))
    texts = [button.text() for button in offered(panel)]
    assert texts == [
        "Use 8-bit keys and 4-bit values KV cache",
        "Shorten the context to 4,096",
        "Read in about 3 segments",
        "Look up",
        "Read whole",
        "Leave out 1 old turn",
        "Choose a smaller model…",
        "Allow a context of 6,144",
        "Load again with packed weights",
        "Send anyway…",
    ]
    chosen: list[Choice] = []
    panel.chosen.connect(chosen.append)
    for button in offered(panel)[:-1]:
        button.click()
    assert tuple(chosen) == CHOICES
    with qtbot.waitSignal(panel.anyway):
        offered(panel)[-1].click()
    assert tuple(chosen) == CHOICES


def test_the_numbers_are_shown_and_what_cannot_be_overridden_is_not_offered(panel: RefusalPanel) -> None:
    panel.show_refusal("Refused", refusal(can_override=False))
    assert "It needs 3 GB and there are 2 GB." in [label.text() for label in panel.findChildren(QLabel)]
    assert offered(panel) == []


def test_another_refusal_replaces_the_buttons(qtbot: QtBot, panel: RefusalPanel) -> None:
    panel.show_refusal("Refused", refusal(*CHOICES))
    panel.show_refusal("Refused", refusal(DropTurns(2)), can_try_again=True)
    assert [button.text() for button in offered(panel)] == [
        "Leave out 2 old turns",
        "Try again",
        "Send anyway…",
    ]
    with qtbot.waitSignal(panel.again):
        offered(panel)[1].click()


def test_nothing_is_wider_than_a_narrow_conversation(panel: RefusalPanel) -> None:
    panel.show_refusal("Refused", refusal(*CHOICES))
    panel.show()
    panel.resize(panel.width(), panel.heightForWidth(panel.width()))
    for button in offered(panel):
        assert panel.rect().contains(button.mapTo(panel, button.rect().bottomRight()))


def test_the_panel_can_be_closed(qtbot: QtBot, panel: RefusalPanel) -> None:
    panel.show_refusal("Refused", refusal(*CHOICES))
    with qtbot.waitSignals([panel.gone, panel.closed]):
        panel.findChild(QToolButton).click()
    assert panel.isHidden()


def test_every_button_has_a_name_and_a_description(panel: RefusalPanel) -> None:
    panel.show_refusal("Refused", refusal(*CHOICES), can_try_again=True)
    for button in offered(panel):
        interface = QAccessible.queryAccessibleInterface(button)
        assert interface.text(QAccessible.Text.Name)
        assert interface.text(QAccessible.Text.Description)


def test_beyond_the_own_limit_alone_nothing_is_said_of_a_computer_that_hangs() -> None:
    own = AdmissionError("", needed_nbytes=2, available_nbytes=1, limit_nbytes=1_000_000_000)
    assert "1.0 GB that Octavo may take" in risk_words("The message", own)
    assert "hang" not in risk_words("The message", own)
    assert "The computer may swap and hang" in risk_words("The message", refusal())


def test_a_choice_of_precision_names_what_then_fits() -> None:
    assert "20,000 tokens fit" in choice_words(CHOICES[0])[1]


def test_tab_goes_through_the_choices_in_their_order_and_on_to_what_follows(qtbot: QtBot) -> None:
    window, panel = QWidget(), RefusalPanel("Send anyway…")
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    before, after = QPushButton("before"), QPushButton("after")
    for widget in (before, panel, after):
        column.addWidget(widget)
    panel.show_refusal("Refused", refusal(DropTurns(1)))
    panel.show_refusal("Refused", refusal(*CHOICES[:2]))
    window.show()
    order, widget = [], before
    while widget is not after:
        widget = widget.nextInFocusChain()
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not widget.isHidden():
            order.append(widget)
    assert order == [*offered(panel), panel.findChild(QToolButton), after]
