"""The editor of a message that was sent."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.chat.prompt_edit import PromptEdit
from ui.markdown.style import MarkdownStyle

_MAX_EDIT_LINES = 16


class MessageEditor(QFrame):
    """The text of a sent message, to be changed and sent as a new version.

    Signals:
        saved: send this text.
        cancelled: leave everything as it was.
    """

    saved = Signal(str)
    cancelled = Signal()

    def __init__(
        self, text: str, style: MarkdownStyle, *, allow_empty: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._allow_empty = allow_empty
        self._is_sending_enabled = True
        self.setProperty("kind", "card")
        self.edit = PromptEdit("Edit message", _MAX_EDIT_LINES, self, keeps_escape=True)
        self.edit.setFont(style.font)
        self.edit.set_text(text)
        note = QLabel("The old version stays; you can go back to it.", wordWrap=True)
        note.setProperty("kind", "faint")
        self._cancel = QPushButton("Cancel")
        self._save = QPushButton("Save && send")
        self._save.setProperty("kind", "primary")
        self._save.setAccessibleName("Save and send")
        self._cancel.clicked.connect(self.cancelled)
        self._save.clicked.connect(self._send)
        self.edit.enter_pressed.connect(self._send)
        self.edit.escape_pressed.connect(self.cancelled)
        self.edit.edited.connect(self._update)
        buttons = QHBoxLayout()
        buttons.addWidget(note, 1)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._save)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 12, 12)
        column.setSpacing(10)
        column.addWidget(self.edit)
        column.addLayout(buttons)
        self._update()

    @property
    def focus_stops(self) -> list[QWidget]:
        """Text and buttons, in order."""
        return [self.edit, self._cancel, self._save]

    def set_sending_enabled(self, is_enabled: bool) -> None:
        """Allow sending, or not while a reply is written."""
        self._is_sending_enabled = is_enabled
        self._update()

    def _can_send(self) -> bool:
        return self._is_sending_enabled and (self._allow_empty or bool(self.edit.toPlainText().strip()))

    def _update(self) -> None:
        self._save.setEnabled(self._can_send())

    def _send(self) -> None:
        if self._can_send():
            self.saved.emit(self.edit.toPlainText())
