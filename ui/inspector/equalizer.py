"""The equalizer of the KV precision: a bar for the keys and one for the values of each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from engine.kv.precision import BitsPair
from ui.inspector.layer_bars import Bar, LayerBars
from ui.inspector.layer_strokes import GUTTER, BarGeometry
from ui.plain_text import plain_label
from ui.theme import Theme

_MOST_UNDO = 50
_AXIS_STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
_NO_MODEL = "Load a model to set its layers one by one."
_HELP = (
    "With the keyboard: Left and Right move, Up and Down change, Shift extends, Delete sets back, Ctrl+Z "
    "takes back.\nA line below a bar: some of its heads have bits of their own. Stripes: no pages."
)
_HOW = "Drag across the bars to set layers. Double-click sets one back."


@dataclass(frozen=True)
class Layer:
    """A layer of the loaded model.

    Attributes:
        bits: of its keys and values, apart from those of single heads.
        has_heads: whether some of its KV heads have bits of their own.
        is_paged: whether it has pages at all.
    """

    bits: BitsPair
    has_heads: bool = False
    is_paged: bool = True


class Equalizer(QWidget):
    """Edits the bits of each layer.

    Attributes:
        usual: the bits that a layer is set back to.
        describe: returns what to say of the layers from a first to a last one.

    Signals:
        moved: the bits shown changed; the mouse may still be down. A tuple of `BitsPair`, one for each layer.
        chosen: the user settled on other bits, in the same form.
        grabbed: whether the mouse holds one of the rows.
    """

    moved = Signal(object)
    chosen = Signal(object)
    grabbed = Signal(bool)

    def __init__(self, describe: Callable[[int, int], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.usual = BitsPair(16, 16)
        self.describe = describe
        self._layers: tuple[Layer, ...] = ()
        self._settled: tuple[BitsPair, ...] = ()
        self._undo: list[tuple[BitsPair, ...]] = []
        self._pointed = (-1, -1)
        self._keys = LayerBars("Keys", "accent")
        self._values = LayerBars("Values", "chart_cache")
        self._together = QCheckBox("Set both rows")
        self._together.setAccessibleName("Set keys and values of a layer together")
        self._together.setToolTip("What is painted on one row is painted on the other too")
        self._axis = _Axis()
        self._said = plain_label(wraps=True)
        self._said.setProperty("kind", "muted")
        self._said.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._said.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        for row in (self._keys, self._values):
            row.painted.connect(lambda wanted, row=row: self._paint(wanted, row))
            row.settled.connect(self._settle)
            row.grabbed.connect(self.grabbed)
            row.pointed.connect(self._point)
            row.undo_requested.connect(self._take_back)
        self._lay_out()
        self.set_layers(())

    @property
    def bits(self) -> tuple[BitsPair, ...]:
        """The bits shown, of each layer."""
        return tuple(layer.bits for layer in self._layers)

    def set_layers(self, layers: Sequence[Layer]) -> None:
        """Show these layers, silently; none where there is no model."""
        self._show(layers)
        if self._settled != self.bits:
            self._settled = self.bits
            self._undo.clear()

    def preview_layers(self, layers: Sequence[Layer]) -> None:
        """Show layers that the user is only passing through, with a slider."""
        self._show(layers)

    def _show(self, layers: Sequence[Layer]) -> None:
        self._layers = tuple(layers)
        self._keys.set_bars([Bar(layer.bits.keys, layer.has_heads, layer.is_paged) for layer in layers])
        self._values.set_bars([Bar(layer.bits.values, layer.has_heads, layer.is_paged) for layer in layers])
        self._together.setEnabled(bool(layers))
        self._axis.set_layers(len(layers))
        self._say()

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        title = QLabel("By layer")
        title.setToolTip(_HELP)
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self._together)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._keys)
        column.addWidget(self._values)
        column.addWidget(self._axis)
        column.addWidget(self._said)
        self._said.setFixedHeight(2 * self._said.fontMetrics().lineSpacing() + 2)

    def _paint(self, wanted: dict[int, int | None], row: LayerBars) -> None:
        layers = list(self._layers)
        for layer, bits in wanted.items():
            old = layers[layer].bits
            keys, values = (self.usual.keys, self.usual.values) if bits is None else (bits, bits)
            if row is self._keys or self._together.isChecked():
                old = replace(old, keys=keys)
            if row is self._values or self._together.isChecked():
                old = replace(old, values=values)
            layers[layer] = replace(layers[layer], bits=old)
        if tuple(layers) != self._layers:
            self._show(layers)
            self.moved.emit(self.bits)

    def _settle(self) -> None:
        if self.bits != self._settled:
            self._undo = [*self._undo[1 - _MOST_UNDO :], self._settled]
            self._settled = self.bits
            self.chosen.emit(self.bits)

    def _take_back(self) -> None:
        """Bring the bits back that were there before the last stroke."""
        if self._undo:
            before = self._undo.pop()
            self._settled = before
            self._show([replace(layer, bits=bits) for layer, bits in zip(self._layers, before, strict=True)])
            self.moved.emit(self.bits)
            self.chosen.emit(self.bits)

    def _point(self, first: int, last: int) -> None:
        self._pointed = first, last
        self._say()

    def _say(self) -> None:
        first, last = self._pointed
        if not self._layers:
            said = _NO_MODEL
        elif 0 <= first <= last < len(self._layers):
            said = self.describe(first, last)
        else:
            said = _HOW
        self._said.setText(said)
        self._said.setToolTip(said)


class _Axis(QWidget):
    """The numbers of the layers, below the bars."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        Theme.current().changed.connect(self.update)

    def set_layers(self, count: int) -> None:
        if count != self._count:
            self._count = count
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(GUTTER + 120, self.fontMetrics().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        if not self._count:
            return
        painter = QPainter(self)
        small = self.font()
        small.setPointSizeF(small.pointSizeF() * 0.8)
        painter.setFont(small)
        painter.setPen(Theme.current().palette.color("text_muted"))
        room = painter.fontMetrics().horizontalAdvance("000") + 8
        geometry = BarGeometry(self._count, self.width())
        fitting = (self.width() - GUTTER) // room
        step = next((step for step in _AXIS_STEPS if self._count <= step * fitting), _AXIS_STEPS[-1])
        for layer in range(0, self._count, step):
            centre = geometry.column(layer).center().x()
            left = min(max(GUTTER, centre - room // 2), self.width() - room)
            align = Qt.AlignmentFlag.AlignLeft if left == GUTTER else Qt.AlignmentFlag.AlignHCenter
            painter.drawText(QRect(left, 0, room, self.height()), align, f"{layer}")
