"""What the Memory panel says of samples that are made up."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from engine.figures import EngineFigures, Phase
from engine.guard import Guard, GuardAction, GuardStep
from engine.memory import PressureLevel
from engine.memory_limits import MemoryLimits
from tests.ui.conftest import figure
from tests.ui.inspector.memory.conftest import PANEL_WIDTH
from tests.ui.inspector.memory.samples import BUSY, GB, IDLE, at
from tests.ui.inspector.panels import loaded_model
from ui.inspector.memory.panel import MemoryPanel
from ui.memory_watch import MemoryWatch
from ui.theme import Theme

LATER_S = 100_000.0
"""After all times of the story."""


def words(widget: QWidget) -> str:
    """All words of the labels that are shown."""
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def button(panel: QWidget, text: str) -> QPushButton:
    return next(one for one in panel.findChildren(QPushButton) if one.text() == text)


def send(watch: MemoryWatch, **figures: object) -> None:
    watch._take(dataclasses.replace(BUSY, **{"time_s": LATER_S, **figures}), False)


def test_the_legend_is_a_table_of_the_newest_sample(panel: MemoryPanel, watch: MemoryWatch) -> None:
    send(watch)
    assert panel.legend.rows == [
        ("Octavo", "3.0 GB"),
        ("Rest of Octavo", "500 MB"),
        ("MLX free buffers", "150 MB"),
        ("Idle conversations", "600 MB"),
        ("KV open", "50 MB"),
        ("KV hot", "100 MB"),
        ("KV warm", "200 MB"),
        ("KV cold", "400 MB"),
        ("Weights", "1.0 GB"),
        ("Swap in use", "120 MB"),
    ]
    assert figure(panel, "Moment that is read") == "Now · Writing"


def test_plan_and_actual_stand_side_by_side_with_their_difference(
    panel: MemoryPanel, watch: MemoryWatch
) -> None:
    send(watch)
    assert panel.plan.rows == [
        ("Weights", "980 MB", "1.0 GB", "+2.0 %"),
        ("KV cache", "800 MB", "750 MB", "−6.2 %"),
        ("Together", "1.8 GB", "1.8 GB", "−1.7 %"),
    ]
    heard = QAccessible.queryAccessibleInterface(panel.plan).text(QAccessible.Text.Description)
    assert heard.startswith("Weights: planned 980 MB, actual 1.0 GB, difference +2.0 %; KV cache: ")


def test_what_was_not_planned_has_no_difference(panel: MemoryPanel, watch: MemoryWatch) -> None:
    send(watch, engine=EngineFigures(weights_nbytes=5))
    assert panel.plan.rows[:2] == [("Weights", "–", "5 bytes", "–"), ("KV cache", "–", "–", "–")]
    send(watch, time_s=LATER_S + 1, engine=EngineFigures(weights_nbytes=1_000, planned_weights_nbytes=1_000))
    assert panel.plan.rows[0] == ("Weights", "1.0 KB", "1.0 KB", "0 %")


@pytest.mark.parametrize(
    ("level", "word", "notice"),
    [
        (PressureLevel.NORMAL, "Normal", ""),
        (PressureLevel.WARNING, "Short", "warning"),
        (PressureLevel.CRITICAL, "Very short", "error"),
    ],
)
def test_pressure_is_told_in_a_word_a_picture_and_a_sentence(
    panel: MemoryPanel, watch: MemoryWatch, level: PressureLevel, word: str, notice: str
) -> None:
    send(watch, level=PressureLevel.WARNING)
    send(watch, time_s=LATER_S + 1, level=level, reason="swap grows by 40 MB a second")
    assert figure(panel, "Memory pressure") == word
    assert figure(panel, "Reason of the memory pressure") == "Swap grows by 40 MB a second."
    assert panel.gauge.property("notice") == notice
    assert not panel.gauge._icon.pixmap().isNull()


def test_free_memory_and_shares_are_told(panel: MemoryPanel, watch: MemoryWatch) -> None:
    send(watch, available_nbytes=5 * GB)
    assert "Octavo 3.0 GB, others 8.0 GB" in words(panel.gauge)
    send(watch, time_s=LATER_S + 1, available_nbytes=310_000_000, level=PressureLevel.WARNING)
    assert "Octavo 3.0 GB, others 12.7 GB, free 310 MB" in words(panel.gauge)


def test_a_notice_of_short_memory_fits_into_the_narrowest_pane(
    panel: MemoryPanel, watch: MemoryWatch
) -> None:
    panel.set_limits(MemoryLimits(most_nbytes=850_000_000))
    sizes = {"total_nbytes": 25_300_000_000, "available_nbytes": 18_600_000_000}
    send(watch, level=PressureLevel.CRITICAL, **sizes)
    QApplication.processEvents()  # lays out
    assert panel.minimumSizeHint().width() <= PANEL_WIDTH


def test_free_memory_is_said_once_while_there_is_enough(panel: MemoryPanel, watch: MemoryWatch) -> None:
    send(watch, available_nbytes=5 * GB, reason="5.0 of the 16.0 GB of memory are free")
    assert words(panel.gauge).count("free") == 1


def test_before_the_first_model_a_sentence_stands_in_place_of_the_figures(
    qtbot: QtBot, watch: MemoryWatch
) -> None:
    panel = MemoryPanel()
    qtbot.addWidget(panel)
    panel.set_watch(watch)
    panel.show()
    qtbot.waitExposed(panel)
    assert "No model has been loaded yet." in words(panel)
    assert not panel.curve.isVisible()
    panel.set_model(loaded_model(2, 2))
    assert "No model" not in words(panel)
    assert panel.curve.isVisible()
    panel.set_model(None)
    assert panel.curve.isVisible()


def test_nothing_is_said_of_memory_that_was_not_measured(qtbot: QtBot) -> None:
    panel = MemoryPanel()
    qtbot.addWidget(panel)
    panel.set_watch(MemoryWatch(Guard(), MemoryLimits()))
    panel.show_figures()
    panel.show()
    qtbot.waitExposed(panel)
    assert figure(panel, "Memory pressure") == "Not measured yet"
    assert {text for _, text in panel.legend.rows} == {"–"}
    assert panel.events.lines == []
    assert "So far nothing that counts had to be given up." in words(panel.events)
    assert not button(panel, "Export as CSV…").isEnabled()
    qtbot.keyClick(panel.curve, Qt.Key.Key_Left)
    assert panel.curve.read is None


def test_the_guards_actions_are_listed_newest_first(panel: MemoryPanel, watch: MemoryWatch) -> None:
    assert panel.events.lines == ["SPILL_IDLE at 1480.", "LOWER_TIERS at 1468.", "CLEAR_CACHE at 1450."]
    for number in range(5):
        watch.take_action(GuardAction(GuardStep.TRIM, False, "swap grows", f"{number} turns were left out."))
    assert panel.events.lines[:2] == ["4 turns were left out.", "3 turns were left out."]
    assert len(panel.events.lines) == 6
    assert "and 2 before" in words(panel.events)


def test_a_reply_that_waits_can_be_told_to_go_on(
    qtbot: QtBot, panel: MemoryPanel, watch: MemoryWatch
) -> None:
    assert not panel.pause.isVisible()
    watch.take_action(GuardAction(GuardStep.PAUSE, False, "memory is gone", "The reply waits for memory."))
    assert panel.pause.isVisible()
    assert figure(panel, "Why the reply waits") == "The reply waits for memory."
    with qtbot.waitSignal(panel.go_on_requested):
        button(panel, "Go on anyway").click()
    assert not button(panel, "Go on anyway").isEnabled()
    watch.take_action(GuardAction(GuardStep.PAUSE, True, "", "The reply goes on."))
    assert not panel.pause.isVisible()
    watch.take_action(GuardAction(GuardStep.PAUSE, False, "memory is gone", "The reply waits again."))
    assert button(panel, "Go on anyway").isEnabled()


def test_a_pause_is_over_once_the_engine_does_something_else(panel: MemoryPanel, watch: MemoryWatch) -> None:
    watch.take_action(GuardAction(GuardStep.PAUSE, False, "memory is gone", "The reply waits for memory."))
    paused = dataclasses.replace(BUSY.engine, phase=Phase.PAUSED)
    moment = watch.history.events[-1].time_s
    send(watch, time_s=moment + 1, engine=paused)
    assert panel.pause.isVisible()
    send(watch, time_s=moment + 2)
    assert not panel.pause.isVisible()


def test_everything_that_takes_the_focus_has_a_name(panel: MemoryPanel, watch: MemoryWatch) -> None:
    panel.findChild(QToolButton).click()
    focusable = [
        widget
        for widget in panel.findChildren(QWidget)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not widget.objectName().startswith("qt_")  # the line within a field for numbers
    ]
    assert len(focusable) >= 8
    for widget in focusable:
        interface = QAccessible.queryAccessibleInterface(widget)
        assert interface.text(QAccessible.Text.Name), widget


def test_the_curve_and_the_legend_can_be_heard(panel: MemoryPanel, watch: MemoryWatch) -> None:
    send(watch)
    for widget, part in ((panel.curve, "KV warm 200 MB"), (panel.legend, "KV warm: 200 MB")):
        text = QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Description)
        assert part in text


def test_nothing_is_wider_than_the_narrowest_pane(
    qtbot: QtBot, panel: MemoryPanel, watch: MemoryWatch
) -> None:
    panel.findChild(QToolButton).click()
    watch.take_action(GuardAction(GuardStep.PAUSE, False, "memory is gone", "The reply waits for memory."))
    huge = 999 * GB
    engine = dataclasses.replace(
        BUSY.engine, phase=Phase.PAUSED, weights_nbytes=huge, planned_weights_nbytes=huge // 2
    )
    send(
        watch,
        level=PressureLevel.CRITICAL,
        engine=engine,
        total_nbytes=huge,
        available_nbytes=huge - 123_456_789,
    )
    qtbot.waitUntil(panel.pause.isVisible)
    assert panel.minimumSizeHint().width() <= 270 - 2 * 16 - 11


def test_the_limits_of_the_user_reach_the_curve_and_the_settings(qtbot: QtBot, panel: MemoryPanel) -> None:
    panel.set_limits(MemoryLimits(most_nbytes=4 * GB))
    assert panel.curve.limit_nbytes == 4 * GB
    limits = MemoryLimits(most_nbytes=5 * GB)
    with qtbot.waitSignal(panel.limits_changed) as changed:
        panel.limits._most.setValue(5.0)
    assert changed.args == [limits]
    assert panel.curve.limit_nbytes == 5 * GB
    assert "Octavo 3.3 GB of your 5.0 GB, others 9.0 GB" in words(panel.gauge)
    bar = panel.gauge._bar
    image, danger = bar.grab().toImage(), Theme.current().palette.color("danger")
    marked = [x for x in range(bar.width()) if image.pixelColor(x, bar.height() // 2) == danger]
    assert marked == [round(bar.width() * 5 / 16) - 1, round(bar.width() * 5 / 16)]


def test_a_watch_that_began_earlier_is_shown_from_its_beginning(panel: MemoryPanel) -> None:
    assert figure(panel, "Moment that is read") == "Now · Idle"
    panel.curve.setFocus()
    panel.curve.set_span(3_600.0)
    panel.curve._read(IDLE.time_s)
    assert panel.curve.read == at(panel.curve.read, IDLE.time_s)
    assert figure(panel, "Moment that is read") == "9 min 59 s ago · Idle"
