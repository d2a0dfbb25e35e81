"""One model in a list."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from ui.plain_text import plain_label


class ModelRow(QFrame):
    """A model: title, a line of detail, and what can be done with it."""

    def __init__(self, title: str, detail: str) -> None:
        super().__init__()
        self.setProperty("kind", "row")
        name = plain_label(title)
        name.setProperty("kind", "heading")
        more = plain_label(detail, wraps=True)
        more.setProperty("kind", "muted")
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(name)
        words.addWidget(more)
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(14, 10, 12, 10)
        self._line.setSpacing(10)
        self._line.addLayout(words, 1)

    def add(self, widget: QWidget) -> None:
        """Put a control at the right end."""
        self._line.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
