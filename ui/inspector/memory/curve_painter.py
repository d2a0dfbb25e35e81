"""Draws the picture of the memory curve, all but the cursor."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPolygonF
from PySide6.QtWidgets import QWidget

from engine.figures import Phase
from ui.inspector.memory.parts import Part
from ui.inspector.memory.picture import stack_image
from ui.inspector.memory.scale import ByteScale, axis_text, byte_scale
from ui.inspector.memory.series import PHASES, Columns, Floats
from ui.theme import Palette, Theme

_PLOT_HEIGHT = 132
_MARK_HEIGHT = 9
_PHASE_HEIGHT = 6
_SWAP_HEIGHT = 18
_GAP = 5
_DASH = 4

PHASE_LOOKS = {
    Phase.LOAD: ("text_faint", 0, 0),
    Phase.PREFILL: ("info", 2, 2),
    Phase.DECODE: ("accent", 0, 0),
    Phase.TRIM: ("warning", 4, 2),
    Phase.PAUSED: ("danger", 1, 2),
}
"""The colour of each phase but idle, and the pixels of its stripes and between them; 0 is filled."""
_TINT = 0.3


def small_font(widget: QWidget) -> QFont:
    """Return the font of numbers beside an axis."""
    font = QFont(widget.font())
    font.setPointSizeF(max(7.0, font.pointSizeF() * 0.86))
    return font


@dataclass(frozen=True)
class CurveMarks:
    """What is drawn over the curve: the limit and its name, the times of actions, the seconds shown."""

    limit_nbytes: int
    limit_name: str
    event_times: tuple[float, ...]
    span_s: float


@dataclass(frozen=True)
class CurvePlaces:
    """Where things are drawn, in logical pixels."""

    plot: QRect
    phases: QRect
    swap: QRect

    @classmethod
    def of(cls, widget: QWidget) -> CurvePlaces:
        """Return the places within `widget`."""
        metrics = QFontMetrics(small_font(widget))
        left = metrics.horizontalAdvance("888 MB") + 8
        width = widget.width() - left - 2
        plot = QRect(left, _MARK_HEIGHT + 2, width, _PLOT_HEIGHT)
        phases = QRect(left, plot.bottom() + 1 + _GAP, width, _PHASE_HEIGHT)
        swap = QRect(left, phases.bottom() + 1 + _GAP, width, _SWAP_HEIGHT)
        return cls(plot, phases, swap)

    @staticmethod
    def height(metrics: QFontMetrics) -> int:
        """Return the height of all of it."""
        strips = _PHASE_HEIGHT + _SWAP_HEIGHT + 2 * _GAP
        return _MARK_HEIGHT + 2 + _PLOT_HEIGHT + strips + metrics.height() + 4


class CurvePainter:
    """Draws one picture of `widget` with `painter`."""

    def __init__(self, widget: QWidget, painter: QPainter) -> None:
        self._palette: Palette = Theme.current().palette
        self._places = CurvePlaces.of(widget)
        self._ratio = widget.devicePixelRatioF()
        self._size = widget.size()
        self._painter = painter
        self._painter.setFont(small_font(widget))

    def draw(self, columns: Columns | None, marks: CurveMarks) -> None:
        """Draw everything; without columns only the axes."""
        peak = float(columns.parts.sum(axis=0)[columns.known].max()) if columns is not None else 0.0
        scale = byte_scale(peak, marks.limit_nbytes or float("inf"))
        self._painter.fillRect(self._places.plot, self._palette.color("surface"))
        self._painter.fillRect(self._places.phases, self._palette.color("surface"))
        if columns is not None:
            self._draw_stack(columns, scale)
            self._draw_phases(columns)
            self._draw_swap(columns)
        self._draw_bytes(scale)
        self._draw_minutes(marks.span_s)
        if columns is not None:
            self._draw_limit(scale, marks)
            self._draw_events(columns, marks)

    def _draw_stack(self, columns: Columns, scale: ByteScale) -> None:
        plot = self._places.plot
        colors = [self._palette.color(part.role) for part in Part]
        self._draw_area(plot, columns.parts, columns, scale.top, colors)

    def _draw_phases(self, columns: Columns) -> None:
        strip, start = self._places.phases, 0
        codes = [code if known else -1 for code, known in zip(columns.phases, columns.known, strict=True)]
        for code, run in itertools.groupby(codes):
            count = len(list(run))
            if code >= 0 and PHASES[code] in PHASE_LOOKS:
                left = strip.left() + start / self._ratio
                area = QRectF(left, strip.top(), max(2.0, count / self._ratio), strip.height())
                fill_phase(self._painter, area, PHASES[code])
            start += count

    def _draw_swap(self, columns: Columns) -> None:
        strip, peak = self._places.swap, float(columns.swap[columns.known].max())
        self._label(strip, "Swap")
        base = QRect(strip.left(), strip.bottom(), strip.width(), 1)
        self._painter.fillRect(base, self._palette.color("border_strong"))
        if peak <= 0:
            self._painter.setPen(self._palette.color("text_faint"))
            self._painter.drawText(strip, Qt.AlignmentFlag.AlignCenter, "none in use")
            return
        above = strip.adjusted(0, 0, 0, -1)
        self._draw_area(above, columns.swap[None], columns, peak * 1.2, [self._palette.color("text_faint")])

    def _draw_area(
        self, place: QRect, parts: Floats, columns: Columns, top: float, colors: list[QColor]
    ) -> None:
        height = round(place.height() * self._ratio)
        colors = [*colors, self._palette.color("surface")]
        self._painter.drawImage(QRectF(place), stack_image(parts, columns.known, height, top, colors))

    def _draw_bytes(self, scale: ByteScale) -> None:
        plot = self._places.plot
        faint = QColor(self._palette.color("text"))
        faint.setAlphaF(0.12)
        for tick in (0.0, *scale.ticks):
            y = plot.bottom() - round(plot.height() * tick / scale.top) + 1
            self._painter.fillRect(plot.left(), y, plot.width(), 1, faint)
            self._label(QRect(plot.left(), y - 8, 0, 16), axis_text(tick) if tick else "0")

    def _draw_minutes(self, span_s: float) -> None:
        strip = self._places.swap
        line = QRect(
            strip.left(), strip.bottom() + 3, strip.width(), self._size.height() - strip.bottom() - 3
        )
        self._painter.setPen(self._palette.color("text_faint"))
        for text, place in (
            (_ago(span_s), Qt.AlignmentFlag.AlignLeft),
            (_ago(span_s / 2), Qt.AlignmentFlag.AlignHCenter),
            ("now", Qt.AlignmentFlag.AlignRight),
        ):
            self._painter.drawText(line, place | Qt.AlignmentFlag.AlignVCenter, text)

    def _draw_limit(self, scale: ByteScale, marks: CurveMarks) -> None:
        if not 0 < marks.limit_nbytes <= scale.top:
            return
        plot, danger = self._places.plot, self._palette.color("danger")
        y = plot.bottom() - round(plot.height() * marks.limit_nbytes / scale.top) + 1
        for x in range(plot.left(), plot.right(), 2 * _DASH):
            self._painter.fillRect(x, y, _DASH, 1, danger)
        self._painter.setPen(danger)
        metrics = self._painter.fontMetrics()
        above, below = y - metrics.descent() - 1, y + metrics.ascent() + 1
        baseline = above if above - metrics.ascent() >= plot.top() else below
        self._painter.drawText(plot.left() + 4, baseline, marks.limit_name)

    def _draw_events(self, columns: Columns, marks: CurveMarks) -> None:
        plot = self._places.plot
        line = QColor(self._palette.color("text"))
        line.setAlphaF(0.4)
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(self._palette.color("warning"))
        for time_s in marks.event_times:
            column = columns.column_of(time_s)
            if 0 <= column < len(columns.known) + 1:
                x = plot.left() + column / self._ratio
                self._painter.fillRect(QRectF(x - 0.5, plot.top(), 1, plot.height()), line)
                self._painter.drawPolygon(event_mark(x, plot.top()))

    def _label(self, beside: QRect, text: str) -> None:
        """Write `text` left of a place."""
        self._painter.setPen(self._palette.color("text_faint"))
        area = QRect(0, beside.top(), beside.left() - 6, beside.height())
        self._painter.drawText(area, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)


def fill_phase(painter: QPainter, area: QRectF, phase: Phase) -> None:
    """Fill an area with the colour and the stripes of a phase that is not idle.

    Qt's own patterns vanish on screens with more pixels than points.
    """
    role, on, off = PHASE_LOOKS[phase]
    color = Theme.current().palette.color(role)
    if not on:
        painter.fillRect(area, color)
        return
    tint = QColor(color)
    tint.setAlphaF(_TINT)
    painter.fillRect(area, tint)
    left = area.left()
    while left < area.right():
        painter.fillRect(QRectF(left, area.top(), min(on, area.right() - left), area.height()), color)
        left += on + off


def event_mark(x: float, bottom: float) -> QPolygonF:
    """Return the mark of an action of the guard, a triangle that points down at `x`."""
    return QPolygonF(
        [
            QPointF(x - 4, bottom - _MARK_HEIGHT + 1),
            QPointF(x + 4, bottom - _MARK_HEIGHT + 1),
            QPointF(x, bottom),
        ]
    )


def _ago(seconds: float) -> str:
    return f"−{seconds / 60:g} min" if seconds >= 60 else f"−{seconds:g} s"
