"""A reply that waits for memory, and the way on."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPushButton, QVBoxLayout, QWidget

from engine.guard import GuardAction
from ui.plain_text import plain_label


class PauseNotice(QFrame):
    """Says that the reply waits and why; hidden while none does.

    Signals:
        go_on_requested: the user wants the reply to go on although memory is short.
    """

    go_on_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("notice", "warning")
        title = plain_label("The reply waits for memory")
        title.setProperty("kind", "heading")
        self._sentence = plain_label(wraps=True)
        self._sentence.setAccessibleName("Why the reply waits")
        self._go_on = QPushButton("Go on anyway")
        self._go_on.setToolTip("The computer may become slow while it swaps")
        self._go_on.clicked.connect(self._on_clicked)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(6)
        column.addWidget(title)
        column.addWidget(self._sentence)
        column.addWidget(self._go_on, 0, Qt.AlignmentFlag.AlignLeft)
        self.hide()

    def show_pause(self, action: GuardAction | None) -> None:
        """Show the action by which a reply waits, None when none does."""
        if action is not None:
            self._sentence.setText(action.sentence)
            self._go_on.setEnabled(True)
        self.setVisible(action is not None)

    def _on_clicked(self) -> None:
        self._go_on.setEnabled(False)
        self.go_on_requested.emit()
