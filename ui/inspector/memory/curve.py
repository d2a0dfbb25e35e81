"""What takes memory, over time: a stacked area with the limit, phases, swap and the guard's actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from engine.memory import MemorySample
from ui.inspector.memory.curve_painter import CurveMarks, CurvePainter, CurvePlaces
from ui.inspector.memory.kept_picture import KeptPicture
from ui.inspector.memory.series import Columns, MemorySeries
from ui.memory_history import GuardEvent
from ui.plain_text import plain_tip
from ui.theme import Theme

_TIP_REACH = 6


class MemoryCurve(KeptPicture):
    """Draws the last minutes of memory; the mouse or the arrow keys read the values of a moment.

    Everything but the cursor is drawn once for each sample and kept as a picture.

    Attributes:
        limit_nbytes: where the line of the limit lies; None for all of the computer's memory.
        span_s: how many seconds are shown.

    Signals:
        read_changed: another moment is read: its `MemorySample`, None for the present.
    """

    read_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.limit_nbytes: int | None = None
        self.span_s = 600.0
        self._series = MemorySeries()
        self._events: Sequence[GuardEvent] = ()
        self._columns: Columns | None = None
        self._cursor_s: float | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Memory over time")

    @property
    def read(self) -> MemorySample | None:
        """The sample of the moment that is read, None for the present."""
        if self._cursor_s is None or not self._series.samples:
            return None
        return self._series.samples[self._series.index_at(self._cursor_s)]

    def append(self, sample: MemorySample) -> None:
        """Show a sample that is newer than all others; a moment that moves out on the left is left."""
        self._series.append(sample)
        self.redraw()
        if self._cursor_s is not None and self._cursor_s < sample.time_s - self.span_s:
            self._read(None)

    def set_events(self, events: Sequence[GuardEvent]) -> None:
        """Mark the guard's actions."""
        self._events = events
        self.redraw()

    def set_span(self, span_s: float) -> None:
        """Show so many seconds."""
        self.span_s = span_s
        self._read(None)
        self.redraw()

    def set_limit(self, nbytes: int | None) -> None:
        """Draw the line of the limit at so many bytes, None for all of the computer's memory."""
        self.limit_nbytes = nbytes
        self.redraw()

    def events_near(self, x: int) -> list[GuardEvent]:
        """Return the guard's actions that are marked within a few pixels of `x`."""
        columns, left = self._current_columns(), CurvePlaces.of(self).plot.left()
        if columns is None:
            return []
        places = ((left + columns.column_of(event.time_s) / self._ratio, event) for event in self._events)
        return [event for place, event in places if place >= left and abs(place - x) <= _TIP_REACH]

    def redraw(self) -> None:  # noqa: D102
        self._columns = None
        super().redraw()

    def draw(self, painter: QPainter) -> None:  # noqa: D102
        CurvePainter(self, painter).draw(self._current_columns(), self._marks())

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(238, CurvePlaces.height(self.fontMetrics()))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(160, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        super().paintEvent(event)
        painter = QPainter(self)
        sample = self.read
        if sample is not None:
            self._draw_cursor(painter, sample)
        if self.hasFocus():
            painter.setPen(Theme.current().palette.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(CurvePlaces.of(self).plot.adjusted(-1, -1, 0, 0))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        columns, plot = self._current_columns(), CurvePlaces.of(self).plot
        x = event.position().x()
        if columns is None or not plot.left() <= x <= plot.right():
            self._read(None)
            return
        column = round((x - plot.left()) * self._ratio)
        is_known = bool(columns.known[min(column, len(columns.known) - 1)])
        self._read((columns.first + column + 0.5) * columns.column_s if is_known else None)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: D102
        if not self.hasFocus():
            self._read(None)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusOutEvent(event)
        self._read(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        columns = self._current_columns()
        if columns is not None and event.key() in steps:
            self._step(steps[Qt.Key(event.key())], columns)
        elif columns is not None and event.key() == Qt.Key.Key_Home:
            self._read(max(columns.first * columns.column_s, self._series.samples[0].time_s))
        elif event.key() in (Qt.Key.Key_End, Qt.Key.Key_Escape) and self._cursor_s is not None:
            self._read(None)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            lines = [f"{one.at:%H:%M:%S}  {one.action.sentence}" for one in self.events_near(event.x())]
            if lines:
                QToolTip.showText(event.globalPos(), plain_tip("\n".join(lines)), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def _step(self, direction: int, columns: Columns) -> None:
        """Read the next sample that falls into another column."""
        samples = self._series.samples
        index = len(samples) - 1 if self._cursor_s is None else self._series.index_at(self._cursor_s)
        column = columns.column_of(samples[index].time_s)
        while 0 <= index < len(samples) and columns.column_of(samples[index].time_s) == column:
            index += direction
        if index >= len(samples):
            self._read(None)
        elif index >= 0 and columns.column_of(samples[index].time_s) >= 0:
            self._read(samples[index].time_s)

    def _read(self, time_s: float | None) -> None:
        before, self._cursor_s = self.read, time_s
        if self.read is not before:
            self.read_changed.emit(self.read)
            self.update()

    @property
    def _ratio(self) -> float:
        return self.devicePixelRatioF()

    def _current_columns(self) -> Columns | None:
        if not self._series.samples:
            return None
        width = max(1, round(CurvePlaces.of(self).plot.width() * self._ratio))
        if self._columns is None or len(self._columns.known) != width:
            self._columns = self._series.columns(width, self.span_s)
        return self._columns

    def _marks(self) -> CurveMarks:
        latest = self._series.samples[-1] if self._series.samples else None
        total = latest.total_nbytes if latest is not None else 0
        is_own = self.limit_nbytes is not None
        return CurveMarks(
            limit_nbytes=self.limit_nbytes if self.limit_nbytes is not None else total,
            limit_name="your limit" if is_own else "all memory",
            event_times=tuple(event.time_s for event in self._events),
            span_s=self.span_s,
        )

    def _draw_cursor(self, painter: QPainter, sample: MemorySample) -> None:
        places, columns = CurvePlaces.of(self), self._current_columns()
        if columns is None:
            return
        x = places.plot.left() + columns.column_of(sample.time_s) / self._ratio
        if x >= places.plot.left():
            painter.setPen(Theme.current().palette.color("text"))
            painter.drawLine(QPointF(x, places.plot.top()), QPointF(x, places.swap.bottom()))
