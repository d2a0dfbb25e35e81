"""The line in a conversation above which the model reads nothing any more."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui.plain_text import plain_label


class LeftOutLine(QWidget):
    """Says how many messages above it the model no longer reads.

    Signals:
        read_all_requested: the model is to read all of them again.
    """

    read_all_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._words = plain_label(wraps=True)
        self._words.setProperty("kind", "muted")
        self._button = QPushButton("Read all again")
        self._button.setProperty("kind", "link")
        self._button.setToolTip("Let the model read the whole conversation, as far as it fits")
        self._button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._button.clicked.connect(self.read_all_requested)
        self._button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        line = QFrame()
        line.setProperty("kind", "line")
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self._words, 1)
        row.addWidget(self._button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(6)
        column.addWidget(line)
        column.addLayout(row)

    @property
    def focus_stops(self) -> list[QWidget]:
        """What takes the keyboard focus."""
        return [self._button]

    def show_count(self, num_left_out: int) -> None:
        """Say how many messages above are left out."""
        which = "message above. It is" if num_left_out == 1 else f"{num_left_out:,} messages above. They are"
        self._words.setText(f"The model no longer reads the {which} kept.")

    def set_enabled(self, is_enabled: bool) -> None:
        """Allow to read all again, or not while a reply is written."""
        self._button.setEnabled(is_enabled)
