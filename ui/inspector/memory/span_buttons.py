"""How much time the memory curve shows."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QFont, QFontMetrics
from PySide6.QtWidgets import QButtonGroup, QFrame, QHBoxLayout, QPushButton, QWidget

SPANS = {"1 min": 60.0, "10 min": 600.0, "1 h": 3600.0}
_FIRST = "10 min"
_PADDING = 12


class SpanButtons(QFrame):
    """A button for each span, one of them down.

    Signals:
        chosen: the span in seconds.
    """

    chosen = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("segments")
        self._group = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(2)
        for number, name in enumerate(SPANS):
            button = QPushButton(name)
            button.setProperty("kind", "segment")
            button.setCheckable(True)
            button.setChecked(name == _FIRST)
            button.setAccessibleName(f"Show the last {name}")
            button.setMinimumWidth(_bold_width(button) + _PADDING)
            self._group.addButton(button, number)
            row.addWidget(button)
        self._group.idClicked.connect(lambda number: self.chosen.emit(tuple(SPANS.values())[number]))

    @property
    def span_s(self) -> float:
        """The span of the button that is down, in seconds."""
        return tuple(SPANS.values())[self._group.checkedId()]


def _bold_width(button: QPushButton) -> int:
    """Return the width of the words once the button is down, which Qt does not reckon with."""
    font = QFont(button.font())
    font.setWeight(QFont.Weight.DemiBold)
    return QFontMetrics(font).horizontalAdvance(button.text())
