"""The button that sends a message, or stops the reply."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from ui.chat.buttons import IconButton
from ui.theme import Theme


class SendButton(IconButton):
    """A round button: Send, or Stop while a reply is written."""

    _SIZE = 34

    def __init__(self, parent: QWidget) -> None:
        super().__init__("send", "Send message", parent)
        self.setFixedSize(self._SIZE, self._SIZE)

    def show_busy(self, is_busy: bool) -> None:
        """Turn into Stop, or back."""
        self.set_name("Stop the reply" if is_busy else "Send message")
        self.set_icon("stop" if is_busy else "send", "on_accent")

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(self._SIZE, self._SIZE)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        role = "accent" if self.isEnabled() else "border"
        if self.isEnabled() and (self.underMouse() or self.isDown()):
            role = "accent_hover"
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(palette.color(role))
        circle = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawEllipse(circle)
        if self.hasFocus():
            painter.setPen(QPen(palette.color("text"), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(circle)
        side = self.iconSize().width()
        left, top = (self.width() - side) // 2, (self.height() - side) // 2
        name = "stop" if self.accessibleName().startswith("Stop") else "send"
        role = "on_accent" if self.isEnabled() else "text_faint"
        painter.drawPixmap(left, top, Theme.current().pixmap(name, side, role))
