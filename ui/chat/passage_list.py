"""Passages below a line, all in sight or folded away."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app.reading.shown import ShownPassage
from ui.chat.passage_button import PassageButton
from ui.plain_text import plain_label
from ui.theme import Theme


class PassageList(QWidget):
    """Passages, one a line.

    Signals:
        passage_requested: show one: its attachment's id, its first character, the one behind its last.
    """

    passage_requested = Signal(int, int, int)

    def __init__(self, passages: Sequence[ShownPassage], *, names_documents: bool) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        self._buttons = [PassageButton(each, self, names_document=names_documents) for each in passages]
        for button in self._buttons:
            button.passage_requested.connect(self.passage_requested)
            column.addWidget(button)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The passages, in order."""
        return list(self._buttons)


class PassageFold(QWidget):
    """A line that opens to passages, below a sentence that says what they are.

    Attributes:
        title: the line.

    Signals:
        passage_requested: show one: its attachment's id, its first character, the one behind its last.
        focus_stops_changed: passages came into sight or went.
    """

    passage_requested = Signal(int, int, int)
    focus_stops_changed = Signal()

    def __init__(
        self, title: str, passages: Sequence[ShownPassage], *, names_documents: bool, sentence: str = ""
    ) -> None:
        super().__init__()
        self.title = title
        self._toggle = QToolButton()
        self._toggle.setText(title)
        self._toggle.setAccessibleName(title)
        self._toggle.setCheckable(True)
        self._toggle.setProperty("kind", "toggle")
        self._toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._toggle.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._toggle.toggled.connect(self._on_toggled)
        self._list = PassageList(passages, names_documents=names_documents)
        self._list.passage_requested.connect(self.passage_requested)
        self._sentence = plain_label(sentence, wraps=True)
        self._sentence.setProperty("kind", "muted")
        self._sentence.setContentsMargins(8, 0, 0, 3)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._sentence)
        column.addWidget(self._list)
        self._show()

    @property
    def is_open(self) -> bool:
        """Whether the passages are in sight."""
        return self._toggle.isChecked()

    @property
    def focus_stops(self) -> list[QWidget]:
        """The line, and the passages while they are in sight."""
        return [self._toggle, *(self._list.focus_stops if self.is_open else [])]

    def set_open(self, is_open: bool) -> None:
        """Open it or close it."""
        self._toggle.setChecked(is_open)

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        icon = "chevron-down" if self.is_open else "chevron-right"
        self._toggle.setIcon(Theme.current().icon(icon, "text_muted"))

    def _on_toggled(self) -> None:
        self._show()
        self.focus_stops_changed.emit()

    def _show(self) -> None:
        self._list.setVisible(self.is_open)
        self._sentence.setVisible(self.is_open and bool(self._sentence.text()))
        self.restyle()
