"""The rounded field in which a message and its documents stand."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from ui.chat.prompt_edit import PromptEdit
from ui.theme import Theme


class ComposerFrame(QFrame):
    """The rounded field around text and buttons; a click anywhere in it goes to the text."""

    def __init__(self, edit: PromptEdit, parent: QWidget) -> None:
        super().__init__(parent)
        self._edit = edit
        self.setCursor(Qt.CursorShape.IBeamCursor)
        edit.focus_changed.connect(self.update)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        self._edit.setFocus(Qt.FocusReason.MouseFocusReason)
        super().mousePressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(palette.color("accent" if self._edit.hasFocus() else "border_strong"), 1))
        painter.setBrush(palette.color("surface"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 16, 16)


def in_line(overhang: int) -> QHBoxLayout:
    """Return the layout of a line below the field, as far inside its frame as the text is."""
    line = QHBoxLayout()
    line.setContentsMargins(overhang, 0, overhang, 0)
    line.setSpacing(16)
    return line
