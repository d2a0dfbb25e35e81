"""The headings of a document, to go to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from app.documents.places import Heading, Places
from ui.list_row import Index, paint_row
from ui.plain_text import plain_tip
from ui.theme import Theme

_INDENT = 14
_PADDING = 8
_PAGE_ROLE = Qt.ItemDataRole.UserRole
_HEADING_ROLE = Qt.ItemDataRole.UserRole + 1


class Outline(QListView):
    """The headings as a list, moved in by their levels, with their pages.

    Signals:
        chosen(int): go to this character of the text.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = OutlineModel(self)
        self.setModel(self._rows)
        self.setItemDelegate(_OutlineDelegate(self))
        self.setAccessibleName("Contents of the document")
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setViewportMargins(8, 4, 4, 4)
        self.clicked.connect(self._choose)
        Theme.current().changed.connect(self.viewport().update)

    def show_places(self, places: Places) -> None:
        """Show the headings of another document."""
        self._rows.set_places(places)

    def follow(self, offset: int) -> None:
        """Select the heading that stands above a character of the text."""
        row = self._rows.row_above(offset)
        index = self._rows.index(row)
        if row < 0:
            self.clearSelection()
        elif index != self.currentIndex():
            self.setCurrentIndex(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._choose(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _choose(self, index: QModelIndex) -> None:
        self.chosen.emit(self._rows.heading(index.row()).offset)


class OutlineModel(QAbstractListModel):
    """One row for each heading."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._places = Places.of("", "text")
        self._headings: Sequence[Heading] = ()

    def set_places(self, places: Places) -> None:
        """Take the headings of another document."""
        self.beginResetModel()
        self._places, self._headings = places, places.headings
        self.endResetModel()

    def heading(self, row: int) -> Heading:
        """Return the heading in a row."""
        return self._headings[row]

    def row_above(self, offset: int) -> int:
        """Return the row of the last heading that begins at a character or before it, -1 for none."""
        return bisect_right(self._headings, offset, key=lambda each: each.offset) - 1

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008, D102
        return 0 if parent.isValid() else len(self._headings)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:  # noqa: D102
        heading = self._headings[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return heading.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(heading.title)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            page = self._places.at(heading.offset).page
            return heading.title if page is None else f"{heading.title}, page {page}"
        if role == _PAGE_ROLE:
            return self._places.at(heading.offset).page
        return heading if role == _HEADING_ROLE else None


class _OutlineDelegate(QStyledItemDelegate):
    """Paints a heading and, at the other side, its page."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(80, option.fontMetrics.height() + 9)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = option.widget
        assert isinstance(view, QAbstractItemView)
        paint_row(view, painter, option, index)
        heading: Heading = index.data(_HEADING_ROLE)
        page = index.data(_PAGE_ROLE)
        palette, metrics = Theme.current().palette, option.fontMetrics
        painter.save()
        rect: QRect = option.rect.adjusted(_PADDING + _INDENT * (heading.level - 1), 0, -_PADDING, 0)
        if page is not None:
            painter.setPen(palette.color("text_faint"))
            painter.drawText(rect, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, f"{page:,}")
            rect = rect.adjusted(0, 0, -metrics.horizontalAdvance(f"{page:,}") - _PADDING, 0)
        painter.setPen(palette.color("text" if heading.level < 3 else "text_muted"))
        title = metrics.elidedText(heading.title, Qt.TextElideMode.ElideRight, max(0, rect.width()))
        painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)
        painter.restore()
