"""The picture of the memory curve, pixel by pixel, and what mouse and keys read from it."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QColor, QHelpEvent, QImage
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from engine.figures import EngineFigures, Phase
from tests.ui.inspector.memory.samples import BUSY, IDLE, MB, at, event
from ui.inspector.memory.curve import MemoryCurve
from ui.inspector.memory.curve_painter import CurvePlaces
from ui.inspector.memory.panel import MemoryPanel
from ui.inspector.memory.parts import Part, parts_of
from ui.inspector.memory.scale import byte_scale
from ui.theme import Theme


@pytest.fixture
def curve(qtbot: QtBot) -> MemoryCurve:
    Theme.current().set_choice("light")
    curve = MemoryCurve()
    qtbot.addWidget(curve)
    curve.resize(260, curve.sizeHint().height())
    curve.show()
    qtbot.waitExposed(curve)
    return curve


def steady(curve: MemoryCurve, sample, seconds: int = 60) -> None:  # noqa: ANN001
    for second in range(seconds):
        curve.append(at(sample, 1_000.0 + second))


def picture(curve: MemoryCurve) -> QImage:
    return curve.grab().toImage()


def column_colors(image: QImage, x: int, top: int, bottom: int) -> list[str]:
    """The colours from the bottom up, each once, those of edges left out."""
    found: list[str] = []
    for y in range(bottom, top - 1, -1):
        name = image.pixelColor(x, y).name()
        if not found or found[-1] != name:
            found.append(name)
    return found


def test_parts_lie_one_above_the_other_as_high_as_their_bytes(curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    curve.set_span(60.0)
    plot, image, palette = CurvePlaces.of(curve).plot, picture(curve), Theme.current().palette
    top = byte_scale(BUSY.process_nbytes, BUSY.total_nbytes).top
    x = plot.center().x()
    height = 0.0
    for part, nbytes in zip(Part, parts_of(BUSY), strict=True):
        middle = height + nbytes / 2
        y = round(plot.bottom() + 1 - middle / top * plot.height() - 0.5)
        color = palette.color(part.role)
        near = [image.pixelColor(x, y + nudge).name() for nudge in (-1, 0, 1)]
        assert color.name() in near, part
        height += nbytes
    above = round(plot.bottom() - height / top * plot.height()) - 3
    assert image.pixelColor(x, above) == palette.color("surface")


def test_the_order_of_the_stack_is_that_of_the_parts(curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    curve.set_span(60.0)
    plot, palette = CurvePlaces.of(curve).plot, Theme.current().palette
    colors = column_colors(picture(curve), plot.center().x(), plot.top(), plot.bottom())
    roles = {palette.color(part.role).name(): part for part in Part}
    assert list(dict.fromkeys(roles[color] for color in colors if color in roles)) == list(Part)


def test_nothing_is_drawn_where_there_was_no_sample(curve: MemoryCurve) -> None:
    steady(curve, BUSY, seconds=30)
    curve.set_span(60.0)
    plot, image, palette = CurvePlaces.of(curve).plot, picture(curve), Theme.current().palette
    weights = palette.color("chart_weights")
    near_bottom = plot.bottom() - 4
    filled = [x for x in range(plot.left(), plot.right() + 1) if image.pixelColor(x, near_bottom) == weights]
    assert plot.left() + plot.width() * 0.48 < filled[0] < plot.left() + plot.width() * 0.54
    assert filled[-1] == plot.right()


def strip_colors(curve: MemoryCurve) -> list[str]:
    strip, image = CurvePlaces.of(curve).phases, picture(curve)
    return [image.pixelColor(x, strip.center().y()).name() for x in range(strip.left(), strip.right() + 1)]


def test_phases_are_marked_below_the_columns_in_which_they_were(curve: MemoryCurve) -> None:
    for second in range(60):
        phase = Phase.DECODE if 20 <= second < 40 else Phase.IDLE
        curve.append(at(IDLE, 1_000.0 + second, engine=EngineFigures(phase=phase)))
    curve.set_span(60.0)
    colors, accent = strip_colors(curve), Theme.current().palette.color("accent").name()
    marked = [place / len(colors) for place, color in enumerate(colors) if color == accent]
    assert marked[0] == pytest.approx(20 / 60, abs=0.02)
    assert marked[-1] == pytest.approx(40 / 60, abs=0.02)


def test_a_phase_of_one_sample_in_an_hour_is_seen(curve: MemoryCurve) -> None:
    for second in range(3_600):
        phase = Phase.DECODE if second == 1_800 else Phase.IDLE
        curve.append(at(IDLE, 10_000.0 + second, engine=EngineFigures(phase=phase)))
    curve.set_span(3_600.0)
    assert Theme.current().palette.color("accent").name() in strip_colors(curve)


def test_an_action_is_marked_at_its_time_and_tells_what_was_done(qtbot: QtBot, curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    curve.set_span(60.0)
    acted = event(1_030.0)
    curve.set_events([acted, event(500.0)])
    plot = CurvePlaces.of(curve).plot
    x = plot.left() + round(plot.width() * 31 / 60)
    assert curve.events_near(x) == [acted]
    assert curve.events_near(x + 20) == []
    assert curve.events_near(plot.left()) == []
    warning, image = Theme.current().palette.color("warning"), picture(curve)
    marked = [place for place in range(curve.width()) if image.pixelColor(place, plot.top() - 5) == warning]
    assert marked and abs(sum(marked) / len(marked) - x) <= 2
    place = QPoint(x, plot.top() + 20)
    QApplication.sendEvent(curve, QHelpEvent(QEvent.Type.ToolTip, place, curve.mapToGlobal(place)))
    assert QToolTip.text().endswith(acted.action.sentence)
    QToolTip.hideText()


def test_the_limit_is_drawn_when_it_is_in_range(curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    plot, danger = CurvePlaces.of(curve).plot, Theme.current().palette.color("danger")

    def rows_of_the_line() -> list[int]:
        image = picture(curve)
        return [
            y
            for y in range(plot.top(), plot.bottom() + 1)
            if sum(image.pixelColor(x, y) == danger for x in range(plot.left(), plot.right()))
            > plot.width() // 3
        ]

    assert rows_of_the_line() == []
    curve.set_limit(3_500 * MB)
    top = byte_scale(BUSY.process_nbytes, 3_500 * MB).top
    assert rows_of_the_line() == [pytest.approx(plot.bottom() + 1 - plot.height() * 3_500 * MB / top, abs=1)]


def test_swap_has_a_strip_of_its_own(curve: MemoryCurve) -> None:
    for second in range(60):
        curve.append(at(IDLE, 1_000.0 + second, swap_nbytes=0 if second < 30 else 500 * MB))
    curve.set_span(60.0)
    strip, image = CurvePlaces.of(curve).swap, picture(curve)
    color = Theme.current().palette.color("text_faint")
    middle = strip.center().y()
    filled = [x for x in range(strip.left(), strip.right() + 1) if image.pixelColor(x, middle) == color]
    assert filled[0] == pytest.approx(strip.left() + strip.width() / 2, abs=5)
    assert filled[-1] == strip.right()


def test_the_mouse_reads_the_moment_under_it(qtbot: QtBot, panel: MemoryPanel) -> None:
    plot = CurvePlaces.of(panel.curve).plot
    qtbot.mouseMove(panel.curve, QPoint(plot.left() + round(plot.width() * 0.5), plot.center().y()))
    assert panel.curve.read is not None
    assert panel.curve.read.time_s == pytest.approx(IDLE.time_s + 300, abs=7)
    assert dict(panel.legend.rows)["Weights"] == "1.9 GB"
    assert "Writing" in panel._moment.text()
    qtbot.mouseMove(panel.curve, QPoint(2, plot.center().y()))
    assert panel.curve.read is None
    assert panel._moment.text() == "Now · Idle"


def test_the_keys_read_moment_after_moment(qtbot: QtBot, panel: MemoryPanel) -> None:
    curve = panel.curve
    curve.set_span(60.0)
    newest = IDLE.time_s + 599
    read = []
    for _ in range(3):
        qtbot.keyClick(curve, Qt.Key.Key_Left)
        assert curve.read is not None
        read.append(curve.read.time_s)
    assert read == [newest - 1, newest - 2, newest - 3]
    assert panel._moment.text() == "3 s ago · Idle"
    assert curve.accessibleDescription().startswith("3 s ago · Idle. Octavo ")
    qtbot.keyClick(curve, Qt.Key.Key_Right)
    assert curve.read.time_s == newest - 2
    qtbot.keyClick(curve, Qt.Key.Key_Home)
    assert curve.read.time_s == pytest.approx(newest - 59, abs=1)
    qtbot.keyClick(curve, Qt.Key.Key_Left)
    assert curve.read.time_s >= newest - 60
    qtbot.keyClick(curve, Qt.Key.Key_Escape)
    assert curve.read is None


def test_a_step_of_the_keys_is_seen_when_an_hour_is_shown(qtbot: QtBot, panel: MemoryPanel) -> None:
    curve = panel.curve
    curve.set_span(3_600.0)
    qtbot.keyClick(curve, Qt.Key.Key_Left)
    assert curve.read is not None
    first = curve.read.time_s
    qtbot.keyClick(curve, Qt.Key.Key_Left)
    assert first - curve.read.time_s >= 3_600 / curve.width() - 1


def test_what_is_read_stays_as_samples_come(qtbot: QtBot, panel: MemoryPanel) -> None:
    qtbot.keyClick(panel.curve, Qt.Key.Key_Left)
    read = panel.curve.read
    assert read is not None and panel._watch is not None
    panel._watch._take(at(BUSY, read.time_s + 7), False)
    assert panel.curve.read is read
    assert panel._moment.text().startswith("7 s ago")


def test_a_moment_that_moves_out_of_the_picture_is_left(qtbot: QtBot, panel: MemoryPanel) -> None:
    curve = panel.curve
    curve.set_span(60.0)
    newest = curve._series.samples[-1].time_s
    qtbot.keyClick(curve, Qt.Key.Key_Left)
    for second in range(1, 58):
        curve.append(at(BUSY, newest + second))
    assert curve.read is not None
    with qtbot.waitSignal(curve.read_changed) as read:
        for second in range(58, 63):
            curve.append(at(BUSY, newest + second))
    assert read.args == [None]


def test_between_samples_nothing_is_drawn_anew(curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    picture(curve)
    kept = curve._picture
    assert kept is not None
    picture(curve)
    assert curve._picture is kept
    curve.append(at(BUSY, 1_060.0))
    picture(curve)
    assert curve._picture is not kept


def test_other_colours_are_drawn_at_once(curve: MemoryCurve) -> None:
    steady(curve, BUSY)
    plot = CurvePlaces.of(curve).plot
    x, y = plot.right() - 1, plot.bottom() - 3
    for look in ("light", "dark"):
        Theme.current().set_choice(look)
        assert picture(curve).pixelColor(x, y) == QColor(Theme.current().palette.chart_weights)
    Theme.current().set_choice("light")


def test_a_screen_with_more_pixels_gets_a_finer_picture(curve: MemoryCurve) -> None:
    steady(curve, dataclasses.replace(BUSY))
    columns = curve._current_columns()
    assert columns is not None
    assert len(columns.known) == round(CurvePlaces.of(curve).plot.width() * curve.devicePixelRatioF())
