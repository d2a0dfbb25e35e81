"""Asking for the name of a profile."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QDialog, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.profiles import MAX_NAME_CHARS
from engine.errors import OctavoError
from ui.plain_text import plain_label


class NameDialog(QDialog):
    """A field for a name; one that cannot be is said below it, and the dialog stays.

    `take` gets the name and raises an `OctavoError` where it cannot be.
    """

    def __init__(
        self, title: str, text: str, take: Callable[[str], None], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self._take = take
        heading = plain_label(title)
        heading.setProperty("kind", "heading")
        self.field = QLineEdit(text)
        self.field.setMaxLength(MAX_NAME_CHARS)
        self.field.setAccessibleName("Name of the profile")
        self.field.selectAll()
        self.problem = plain_label(wraps=True)
        self.problem.setProperty("kind", "danger")
        self.problem.hide()
        cancel = QPushButton("Cancel")
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        self.save = QPushButton("Save")
        self.save.setProperty("kind", "primary")
        self.save.setDefault(True)
        self.save.clicked.connect(self._on_save)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.save)
        column = QVBoxLayout(self)
        column.setContentsMargins(22, 18, 22, 16)
        column.setSpacing(10)
        column.addWidget(heading)
        column.addWidget(self.field)
        column.addWidget(self.problem)
        column.addSpacing(4)
        column.addLayout(buttons)
        self.setMinimumWidth(340)

    def _on_save(self) -> None:
        try:
            self._take(self.field.text())
        except OctavoError as error:
            self.problem.setText(str(error))
            self.problem.show()
            self.field.setFocus()
            self.field.selectAll()
            return
        self.accept()


def ask_name(title: str, text: str, take: Callable[[str], None], parent: QWidget | None) -> None:
    """Ask for a name until it can be or the user gives up."""
    dialog = NameDialog(title, text, take, parent)
    dialog.exec()
    dialog.deleteLater()
