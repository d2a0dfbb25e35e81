"""A card beside the page that is pointed at, with what is known of it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QPixmap
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.chat.elided_label import ElidedLabel
from ui.inspector.pages.details import PageDetails
from ui.plain_text import plain_label

_WIDTH = 310
_MARGIN = 8
_PANE_GAP = 24
"""Pixels to the panel: the pane's own margin, and as much to the pane as to the window."""


class PageCard(QFrame):
    """Floats above the window, beside the pane where there is room, and lets the mouse through."""

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "row")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._picture = QLabel()
        self._title = plain_label()
        self._title.setProperty("kind", "heading")
        self._span = ElidedLabel()
        self._span.setProperty("kind", "muted")
        self._beginning = plain_label(wraps=True)
        self._end = plain_label(wraps=True)
        self._hint = plain_label()
        self._hint.setProperty("kind", "faint")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._picture)
        head.addWidget(self._title, 1)
        self._grid = QGridLayout()
        self._grid.setVerticalSpacing(3)
        self._grid.setHorizontalSpacing(12)
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[QLabel, QLabel]] = []
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._span)
        column.addWidget(self._beginning)
        column.addWidget(self._end)
        column.addLayout(self._grid)
        column.addWidget(self._hint)
        self.hide()

    def show_page(self, details: PageDetails, picture: QPixmap, hint: str) -> None:
        """Take what is shown."""
        self._picture.setPixmap(picture)
        self._title.setText(details.title)
        self._span.setText(details.span)
        for label, text in (
            (self._beginning, details.beginning),
            (self._end, details.end),
            (self._hint, hint),
        ):
            label.setText(text)
            label.setVisible(bool(text))
        while len(self._rows) < len(details.rows):
            self._add_row()
        for line, labels in enumerate(self._rows):
            texts = details.rows[line] if line < len(details.rows) else ("", "")
            for label, text in zip(labels, texts, strict=True):
                label.setText(text)
                label.setVisible(bool(text))

    def place(self, window: QWidget, pane: QRect, cell: QRect) -> None:
        """Show the card in a window, beside the pane, else below or above the cell; all in the window."""
        if self.parentWidget() is not window:
            self.setParent(window)
            window.installEventFilter(self)
        width = min(_WIDTH, window.width() - 2 * _MARGIN)
        self.setFixedWidth(width)
        self._column.activate()  # else rows keep the height of the text before
        height = self.heightForWidth(width)
        self.resize(width, height)
        lowest = window.height() - height - _MARGIN
        if pane.left() >= width + _PANE_GAP + _MARGIN:
            at = QPoint(pane.left() - width - _PANE_GAP, max(_MARGIN, min(cell.top() - _MARGIN, lowest)))
        else:
            top = cell.bottom() + _MARGIN
            above = cell.top() - _MARGIN - height
            left = max(_MARGIN, min(cell.center().x() - width // 2, window.width() - width - _MARGIN))
            at = QPoint(left, top if top <= lowest or above < 0 else above)
        self.move(at)
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.Resize and watched is self.parentWidget():
            self.hide()  # the cell is elsewhere now
        return super().eventFilter(watched, event)

    def _add_row(self) -> None:
        name, value = plain_label(), plain_label(wraps=True)
        name.setProperty("kind", "muted")
        line = len(self._rows)
        self._grid.addWidget(name, line, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, line, 1)
        self._rows.append((name, value))
