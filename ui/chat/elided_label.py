"""One line of text that ends in dots where the room ends."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from ui.plain_text import plain_tip


class ElidedLabel(QLabel):
    """A label of at most `max_width` pixels; what does not fit is in the tool tip."""

    def __init__(self, text: str = "", max_width: int | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._max_width = max_width
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setText(text)

    def sizeHint(self) -> QSize:  # noqa: D102
        width = self.fontMetrics().horizontalAdvance(self.text()) + 2
        return QSize(
            width if self._max_width is None else min(width, self._max_width), super().sizeHint().height()
        )

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(24, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        tip = plain_tip(self.text()) if text != self.text() else ""
        if tip != self.toolTip():
            self.setToolTip(tip)
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        painter.drawText(self.rect(), self.alignment() | Qt.AlignmentFlag.AlignVCenter, text)
