"""A slider with a stop for each precision of the KV cache."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from engine.kv.precision import KV_BITS
from ui.inspector.slider import Slider, WheelGuard
from ui.theme import Theme

STOPS = tuple(sorted(KV_BITS))


class BitsSlider(QWidget):
    """How many bits a key or a value has: a slider, its number above and its stops below.

    Signals:
        moved: the number shown changed, and the mouse still holds it.
        chosen: the user settled on another number.
        grabbed: whether the mouse holds the slider.
    """

    moved = Signal()
    chosen = Signal()
    grabbed = Signal(bool)

    def __init__(self, title: str, what: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settled = STOPS[-1]
        self._is_mixed = False
        self._slider = Slider()
        self._slider.setRange(0, len(STOPS) - 1)
        self._slider.setPageStep(1)
        self._slider.setAccessibleName(f"Bits of a cached {what}")
        WheelGuard(self).guard(self._slider)
        self._slider.valueChanged.connect(self._on_value)
        self._slider.sliderPressed.connect(lambda: self.grabbed.emit(True))
        self._slider.sliderReleased.connect(lambda: self.grabbed.emit(False))
        self._slider.sliderReleased.connect(self._settle)
        self._number = QLabel()
        label = QLabel(title)
        label.setBuddy(self._slider)
        head = QHBoxLayout()
        head.addWidget(label)
        head.addStretch(1)
        head.addWidget(self._number)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self._slider)
        stops = _Stops(self._slider)
        stops.pressed.connect(self.press)
        column.addWidget(stops)
        self.setToolTip(f"Bits of a cached {what}; 16 is the precision that the model itself works in")
        self.show_bits(self._settled)

    @property
    def bits(self) -> int:
        """The number shown."""
        return STOPS[self._slider.value()]

    def show_bits(self, bits: int, *, is_mixed: bool = False) -> None:
        """Show `bits`, silently; `is_mixed` says that other layers or heads have others.

        While the mouse holds the slider it shows what the mouse says.
        """
        if self._slider.isSliderDown():
            return
        self._settled = bits
        self._is_mixed = is_mixed
        with QSignalBlocker(self._slider):
            self._slider.setValue(STOPS.index(bits))
        self._say("mixed" if is_mixed else f"{bits} bits")

    def press(self, stop: int) -> None:
        """Go to a stop, whose number was pressed; where layers differ, also to the one that is shown."""
        self._slider.setFocus(Qt.FocusReason.MouseFocusReason)
        if self._is_mixed and stop == self._slider.value():
            self._is_mixed = False
            self._say(f"{self.bits} bits")
            self.chosen.emit()
        self._slider.setValue(stop)

    def _on_value(self) -> None:
        self._say(f"{self.bits} bits")
        if self._slider.isSliderDown():
            self.moved.emit()
        else:
            self._settle()

    def _settle(self) -> None:
        if self.bits != self._settled:
            self._settled = self.bits
            self.chosen.emit()

    def _say(self, words: str) -> None:
        self._number.setText(words)
        self._slider.setAccessibleDescription(words)


class _Stops(QWidget):
    """The numbers below a slider's stops, each of which can be pressed."""

    pressed = Signal(int)

    def __init__(self, slider: Slider) -> None:
        super().__init__()
        self._slider = slider
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(140, self.fontMetrics().height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit(self._slider.value_at(event.position().toPoint().x()))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(Theme.current().palette.color("text_muted"))
        metrics = self.fontMetrics()
        for index, bits in enumerate(STOPS):
            centre, width = self._slider.centre_of(index), metrics.horizontalAdvance(f"{bits}")
            left = min(max(0, centre - width // 2), self.width() - width)
            painter.drawText(left, metrics.ascent(), f"{bits}")
