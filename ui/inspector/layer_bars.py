"""One bar for each layer, which the mouse paints and the keyboard moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QColor,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.inspector.bits_slider import STOPS
from ui.inspector.layer_strokes import FLOOR, GUTTER, STEP, BarGeometry, Place, crossed
from ui.theme import Theme

_MARK = 4
_STRIPE = 3
_SCALE = (2, 4, 6, 16)
_JUMP = 8


@dataclass(frozen=True)
class Bar:
    """A layer as it is shown.

    Attributes:
        bits: of its keys or values.
        has_heads: whether some of its heads have bits of their own.
        is_paged: whether it has pages at all; without them bits mean nothing.
    """

    bits: int
    has_heads: bool = False
    is_paged: bool = True


class LayerBars(QWidget):
    """The bits of all layers' keys, or of their values, as a row of bars.

    The bars have steps of equal height, one for each number of bits that there is, as the sliders have.

    Signals:
        painted(dict[int, int | None]): layers and the bits that they are to have, None for the usual ones.
        grabbed(bool): whether the mouse holds the bars.
        settled(): the stroke or key press that painted is over.
        pointed(int, int): the first and last layer that the mouse or the keyboard is at, -1 for none.
        undo_requested(): Ctrl+Z.
    """

    painted = Signal(object)
    grabbed = Signal(bool)
    settled = Signal()
    pointed = Signal(int, int)
    undo_requested = Signal()

    def __init__(self, title: str, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self._role = role
        self._bars: tuple[Bar, ...] = ()
        self._hovered = -1
        self._cursor = self._anchor = 0
        self._stroke: Place | None = None
        self._clears = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        Theme.current().changed.connect(self.update)
        self._name()

    @property
    def bars(self) -> tuple[Bar, ...]:
        """What is shown."""
        return self._bars

    def set_bars(self, bars: Sequence[Bar]) -> None:
        """Show these layers; none disables the row."""
        self._bars = tuple(bars)
        if not self._bars and self._stroke is not None:
            self._stroke = None  # a disabled row is not told where the stroke ends
            self.grabbed.emit(False)
        last = max(0, len(self._bars) - 1)
        self._cursor, self._anchor = min(self._cursor, last), min(self._anchor, last)
        self.setEnabled(bool(self._bars))
        self._name()
        self.update()

    @property
    def geometry_now(self) -> BarGeometry:
        """Where the bars stand."""
        return BarGeometry(len(self._bars), self.width())

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(GUTTER + 120, FLOOR + _MARK + 1)

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return self.sizeHint()

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if event.button() == Qt.MouseButton.LeftButton and self._bars:
            self._clears = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
            self._begin(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if event.button() == Qt.MouseButton.LeftButton and self._bars:
            self._clears = True
            self._begin(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if not self._bars:
            return
        here = self.geometry_now.place_at(event.position())
        if self._stroke is not None:
            self._paint_between(self._stroke, here)
            self._stroke = here
            self._select(here.layer, here.layer)
        is_inside = event.position().x() >= GUTTER and self.rect().contains(event.position().toPoint())
        self._hover(here.layer if is_inside or self._stroke else -1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if self._stroke is not None and event.button() == Qt.MouseButton.LeftButton:
            self._stroke = None
            self.grabbed.emit(False)
            self.settled.emit()

    def leaveEvent(self, event: QEvent) -> None:  # noqa: D102
        if self._stroke is None:
            self._hover(-1)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self._point()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusOutEvent(event)
        self._point()

    def event(self, event: QEvent) -> bool:
        """Keep Ctrl+Z from the window's menu while the bars have the focus."""
        is_undo = isinstance(event, QKeyEvent) and _is_undo(event)
        if event.type() == QEvent.Type.ShortcutOverride and is_undo:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move with Left, Right, Home, End and Page keys; change with Up, Down, Delete; Shift extends."""
        last = len(self._bars) - 1
        targets = {
            Qt.Key.Key_Left: self._cursor - 1,
            Qt.Key.Key_Right: self._cursor + 1,
            Qt.Key.Key_Home: 0,
            Qt.Key.Key_End: last,
            Qt.Key.Key_PageUp: self._cursor - _JUMP,
            Qt.Key.Key_PageDown: self._cursor + _JUMP,
        }
        key = Qt.Key(event.key())
        if _is_undo(event):
            self.undo_requested.emit()
        elif key in targets:
            cursor = min(max(0, targets[key]), last)
            extends = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._select(self._anchor if extends else cursor, cursor)
            self._announce()
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step(1 if key == Qt.Key.Key_Up else -1)
        elif key in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self._paint_all(dict.fromkeys(self._selected()))
        else:
            super().keyPressEvent(event)

    def _begin(self, event: QMouseEvent) -> None:
        here = self._stroke = self.geometry_now.place_at(event.position())
        self.grabbed.emit(True)
        self._select(here.layer, here.layer)
        self._paint_between(here, here)

    def _paint_between(self, start: Place, end: Place) -> None:
        wanted = crossed(start, end)
        self._paint(dict.fromkeys(wanted) if self._clears else dict(wanted))

    def _step(self, steps: int) -> None:
        """Give the selected layers the bits of the one that the cursor is at, some stops up or down."""
        stop = STOPS.index(self._bars[self._cursor].bits) + steps
        self._paint_all(dict.fromkeys(self._selected(), STOPS[min(max(0, stop), len(STOPS) - 1)]))

    def _paint_all(self, wanted: dict[int, int | None]) -> None:
        self._paint(wanted)
        self.settled.emit()
        self._announce()

    def _paint(self, wanted: dict[int, int | None]) -> None:
        """Paint layers, and those without pages between them, which changes nothing and keeps rules few."""
        if any(self._bars[layer].is_paged for layer in wanted):
            self.painted.emit(wanted)

    def _selected(self) -> range:
        return range(min(self._anchor, self._cursor), max(self._anchor, self._cursor) + 1)

    def _select(self, anchor: int, cursor: int) -> None:
        self._anchor, self._cursor = anchor, cursor
        self._name()
        self._point()
        self.update()

    def _hover(self, layer: int) -> None:
        if layer != self._hovered:
            self._hovered = layer
            self._point()
            self.update()

    def _point(self) -> None:
        if self._hovered >= 0:
            self.pointed.emit(self._hovered, self._hovered)
        elif self.hasFocus() and self._bars:
            self.pointed.emit(self._selected()[0], self._selected()[-1])
        else:
            self.pointed.emit(-1, -1)

    def _name(self) -> None:
        """Say for screen readers what the keyboard is at."""
        if not self._bars:
            self.setAccessibleName(f"{self._title} by layer")
            return
        first, last = self._selected()[0], self._selected()[-1]
        bar = self._bars[self._cursor]
        layers = f"layer {last}" if first == last else f"layers {first} to {last}, at layer {self._cursor}"
        self.setAccessibleName(
            f"{self._title} of {layers}: {f'{bar.bits} bits' if bar.is_paged else 'not paged'}"
        )

    def _announce(self) -> None:
        if QAccessible.isActive():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, self.accessibleName()))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        self._paint_gutter(painter, palette.color("text_muted"))
        if not self._bars:
            painter.fillRect(QRect(GUTTER, 1, self.width() - GUTTER, FLOOR - 1), palette.color("hover"))
            return
        selected = self._selected() if self.hasFocus() else range(0)
        for layer in range(len(self._bars)):
            self._paint_bar(painter, layer, is_pointed=layer == self._hovered or layer in selected)
        if selected:
            left, right = self.geometry_now.column(selected[0]), self.geometry_now.column(selected[-1])
            painter.setPen(palette.color("text"))
            painter.drawRect(left.united(right).adjusted(-1, -1, 0, _MARK))

    def _paint_bar(self, painter: QPainter, layer: int, *, is_pointed: bool) -> None:
        palette, bar, geometry = Theme.current().palette, self._bars[layer], self.geometry_now
        track = palette.color("pressed" if is_pointed else "hover")
        column = geometry.column(layer)
        if not bar.is_paged:
            for top in range(column.top() + 1, column.bottom(), _STRIPE):
                stripe = QRect(column.left(), top, column.width(), 1)
                painter.fillRect(stripe, palette.color("text_faint" if is_pointed else "border_strong"))
            return
        filled = palette.color(self._role)
        if is_pointed:
            filled = filled.lighter(125) if Theme.current().is_dark else filled.darker(125)
        for stop, bits in enumerate(STOPS):
            painter.fillRect(geometry.block(Place(layer, stop)), filled if bits <= bar.bits else track)
        if bar.has_heads:
            painter.fillRect(
                QRect(column.left(), FLOOR + 2, column.width(), _MARK - 2), palette.color("text")
            )

    def _paint_gutter(self, painter: QPainter, color: QColor) -> None:
        """Write the title upwards and the scale beside the bars."""
        small = self.font()
        small.setPointSizeF(small.pointSizeF() * 0.8)
        painter.setFont(small)
        painter.setPen(color)
        for bits in _SCALE:
            middle = FLOOR - STOPS.index(bits) * STEP - STEP // 2
            box = QRect(0, middle - STEP, GUTTER - 5, 2 * STEP)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{bits}")
        painter.save()
        painter.translate(0, FLOOR)
        painter.rotate(-90)
        painter.drawText(QRect(0, 0, FLOOR, 14), Qt.AlignmentFlag.AlignCenter, self._title)
        painter.restore()


def _is_undo(event: QKeyEvent) -> bool:
    return event.key() == Qt.Key.Key_Z and event.modifiers() == Qt.KeyboardModifier.ControlModifier
