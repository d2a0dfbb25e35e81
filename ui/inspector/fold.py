"""What few people need, folded away below a line."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from ui.theme import Theme


class Fold(QWidget):
    """A line that opens to a widget, and closes it again."""

    def __init__(self, title: str, content: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._content = content
        self._toggle = QToolButton()
        self._toggle.setText(title)
        self._toggle.setCheckable(True)
        self._toggle.setProperty("kind", "toggle")
        self._toggle.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._toggle.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._toggle.toggled.connect(self._refresh)
        Theme.current().changed.connect(self._refresh)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(content)
        self._refresh()

    def _refresh(self) -> None:
        is_open = self._toggle.isChecked()
        if not is_open and self._content.isAncestorOf(self.window().focusWidget()):
            self._toggle.setFocus()  # else Qt moves on to a field below, which takes what is typed
        self._content.setVisible(is_open)
        self._toggle.setIcon(Theme.current().icon("chevron-down" if is_open else "chevron-right"))
