"""Reading the conversation again: offered with its cost where it would help."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton
from pytestqt.qtbot import QtBot

from engine.events import PrefillProgress
from tests.ui.inspector.test_precision_figures import hold, usage
from ui.inspector.precision import PrecisionPanel
from ui.live_precision import Reread

LOST = usage(num_tokens=6_120, effective=(4.0, 4.0), num_below=10)


def said(panel: PrecisionPanel) -> str:
    labels = panel._notice.findChildren(QLabel)
    return "\n".join(label.text() for label in labels if label.isVisible()).replace("\N{NO-BREAK SPACE}", " ")


def button(panel: PrecisionPanel) -> QPushButton:
    return panel._notice.findChild(QPushButton)


def test_it_is_offered_while_pages_have_lost_bits_and_says_what_it_costs(
    qtbot: QtBot, panel: PrecisionPanel
) -> None:
    hold(panel, "8", usage())
    assert not panel._notice.isVisible()
    hold(panel, "8", LOST)
    assert said(panel).endswith("is read again.\nReading again takes about 6,120 tokens.")
    assert button(panel).text() == "Read again"
    with qtbot.waitSignal(panel.rebuild_requested):
        button(panel).click()
    hold(panel, "8", LOST, is_open=False)
    assert not panel._notice.isVisible()


@pytest.mark.parametrize(
    ("prefill_tps", "words"),
    [(10_000, "less than a second"), (1_000, "about 6 s"), (183, "about 30 s"), (15, "about 7 min")],
)
def test_the_time_is_that_of_the_speed_measured_last(
    panel: PrecisionPanel, prefill_tps: float, words: str
) -> None:
    hold(panel, "8", LOST)
    panel.set_reread(Reread(prefill_tps))
    assert said(panel).endswith(f"Reading again takes about 6,120 tokens, {words}.")


def test_it_waits_for_a_reply_and_says_so(panel: PrecisionPanel) -> None:
    hold(panel, "8", LOST)
    button(panel).setFocus()
    panel.set_reread(Reread(hindrance="Wait until the reply is written."))
    assert not button(panel).isEnabled()
    assert said(panel).endswith("6,120 tokens. Wait until the reply is written.")
    focused = panel.window().focusWidget()
    assert panel._notice.isAncestorOf(focused) and not isinstance(focused, QPushButton)
    panel.set_reread(Reread())
    assert button(panel).isEnabled()


def test_while_it_runs_it_shows_how_far_it_is_and_can_be_stopped(qtbot: QtBot, panel: PrecisionPanel) -> None:
    hold(panel, "8", LOST)
    panel.set_reread(Reread(progress=PrefillProgress(2_048, 6_120, 0)))
    assert said(panel) == "Reading again: 2,048 of 6,120 tokens"
    bar = panel._notice.findChild(QProgressBar)
    assert bar.isVisible() and (bar.value(), bar.maximum()) == (2_048, 6_120)
    assert button(panel).text() == "Stop"
    with qtbot.waitSignal(panel.rebuild_stopped), qtbot.assertNotEmitted(panel.rebuild_requested):
        button(panel).click()
    hold(panel, "8", usage())
    panel.set_reread(Reread())
    assert not panel._notice.isVisible()
