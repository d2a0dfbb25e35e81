"""The line in which words are looked for in a document."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QWidget

from ui.chat.buttons import IconButton
from ui.documents.search import MOST_HITS
from ui.theme import Theme


class FindBar(QWidget):
    """A field, how many places there are, and steps between them.

    Signals:
        words_changed(str): what is looked for.
        step_requested(int): 1 for the next place, -1 for the one before.
        closed: it is done with.
    """

    words_changed = Signal(str)
    step_requested = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = QLineEdit(self)
        self.field.setPlaceholderText("Find in this document")
        self.field.setAccessibleName("Find in this document")
        self.field.textChanged.connect(self.words_changed)
        self._count = QLabel(self)
        self._count.setProperty("kind", "muted")
        self._previous = IconButton("chevron-up", "Previous place (Shift+Enter)", self)
        self._next = IconButton("chevron-down", "Next place (Enter)", self)
        self._close = IconButton("close", "Close the search (Esc)", self)
        self._previous.clicked.connect(lambda: self.step_requested.emit(-1))
        self._next.clicked.connect(lambda: self.step_requested.emit(1))
        self._close.clicked.connect(self.closed)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 6, 4)
        row.setSpacing(2)
        row.addWidget(self.field, 1)
        row.addSpacing(6)
        for widget in (self._count, self._previous, self._next, self._close):
            row.addWidget(widget)
        self.show_count(-1, 0, is_running=False)
        Theme.current().changed.connect(self._restyle)

    def begin(self) -> None:
        """Show it, ready to write what is looked for."""
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()

    def show_count(self, current: int, count: int, *, is_running: bool) -> None:
        """Say which of how many places is shown."""
        if not self.field.text().strip():
            words = ""
        elif not count:
            words = "Looking…" if is_running else "Not found"
        else:
            more = "+" if is_running or count >= MOST_HITS else ""
            words = f"{current + 1:,} of {count:,}{more}"
        self._count.setText(words)
        self.field.setAccessibleDescription(words)
        self._previous.setEnabled(count > 0)
        self._next.setEnabled(count > 0)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        is_back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.step_requested.emit(-1 if is_back else 1)
        elif event.matches(QKeySequence.StandardKey.FindNext):
            self.step_requested.emit(1)
        elif event.matches(QKeySequence.StandardKey.FindPrevious):
            self.step_requested.emit(-1)
        else:
            super().keyPressEvent(event)

    def _restyle(self) -> None:
        for button in (self._previous, self._next, self._close):
            button.restyle()
