"""Says above the composer that a reply is being written in another conversation."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QWidget

from ui.chat.elided_label import ElidedLabel


class BusyBar(QFrame):
    """One sentence with *Show* and *Stop*.

    Signals:
        show_requested: open that conversation.
        stop_requested: stop the reply.
    """

    show_requested = Signal()
    stop_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("notice", "info")
        self._label = ElidedLabel()
        show = QPushButton("Show")
        show.setProperty("kind", "flat")
        show.setAccessibleName("Show the conversation in which a reply is being written")
        show.clicked.connect(self.show_requested)
        stop = QPushButton("Stop")
        stop.setProperty("kind", "flat")
        stop.setAccessibleName("Stop the reply in the other conversation")
        stop.clicked.connect(self.stop_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 4, 6, 4)
        row.addWidget(self._label, 1)
        row.addWidget(show)
        row.addWidget(stop)
        self.hide()

    def show_for(self, title: str | None) -> None:
        """Name the other conversation; hidden while there is none."""
        self._label.setText(f"A reply is being written in “{title or ''}”.")
        self.setVisible(title is not None)
