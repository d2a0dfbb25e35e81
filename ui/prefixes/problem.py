"""What is wrong with the store of pages, with an icon, as colour is not the only sign."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from ui.plain_text import plain_label
from ui.theme import Theme

_ICON = 18


class ProblemLine(QFrame):
    """A sentence about what does not work; nothing while all does."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("notice", "warning")
        self._icon = QLabel()
        self._words = plain_label(wraps=True)
        self._words.setAccessibleName("Problem with the prefix cache")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 9, 12, 9)
        row.setSpacing(10)
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._words, 1)
        Theme.current().changed.connect(self._restyle)
        self._restyle()
        self.hide()

    @property
    def sentence(self) -> str:
        """What is shown, empty for nothing."""
        return self._words.text()

    def say(self, sentence: str) -> None:
        """Show a sentence, and say it to who hears it; nothing for an empty one."""
        if sentence == self.sentence:
            return
        self._words.setText(sentence)
        self.setVisible(bool(sentence))
        if sentence:
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, sentence))

    def _restyle(self) -> None:
        self._icon.setPixmap(Theme.current().pixmap("warning", _ICON, "warning"))
