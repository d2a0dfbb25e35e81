"""The table of what is kept on disk by conversation, and the words in its place when there is nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyleOptionViewItem, QTreeView, QWidget

from ui.list_row import Index, paint_row
from ui.prefixes.model import LAST_USED, ROW_ROLE, SHARED, SIZE, TITLE, TOKENS, PrefixTableModel
from ui.prefixes.rows import PrefixRow
from ui.theme import Theme

_LEAST_TITLE_WIDTH = 150
_PADDING = 24
_WIDEST = {SIZE: "99.9 GB", LAST_USED: "30 September 2026", TOKENS: "9,999,999", SHARED: "99.9 GB"}
"""The longest text of each column of figures. Asking all rows for theirs would take 0.1 s."""
_ICON = 14


class PrefixTable(QTreeView):
    """Shows rows and keeps what is selected when they change; columns that have no room are left out.

    Signals:
        selected: other rows are selected, or what is known of them changed.
        opened: Enter was pressed, or a row clicked twice.
        deletion_asked: the Delete key was pressed.
    """

    selected = Signal()
    opened = Signal()
    deletion_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = PrefixTableModel()
        self._rows.setParent(self)
        self.setObjectName("table")
        self.setModel(self._rows)
        self.setAccessibleName("Kept on disk by conversation")
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.setMouseTracking(True)
        self.setIconSize(QSize(_ICON, _ICON))
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.header()
        header.setStretchLastSection(False)
        header.setSectionsMovable(False)
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(TITLE, QHeaderView.ResizeMode.Stretch)
        header.setSortIndicator(LAST_USED, Qt.SortOrder.DescendingOrder)
        self.setSortingEnabled(True)
        self.doubleClicked.connect(lambda _: self.opened.emit())
        self.selectionModel().selectionChanged.connect(self._tell_selection)
        Theme.current().changed.connect(self.viewport().update)

    @property
    def rows(self) -> list[PrefixRow]:
        """All rows, from the top."""
        return self._rows.rows

    @property
    def chosen(self) -> list[PrefixRow]:
        """The selected rows, from the top."""
        rows = self._rows.rows
        return [rows[number] for number in sorted(i.row() for i in self.selectionModel().selectedRows())]

    def set_rows(self, rows: Sequence[PrefixRow]) -> None:
        """Show other rows; what is selected and in sight stays so."""
        chosen = {row.conversation_ids for row in self.chosen}
        current = self._row(self.currentIndex())
        place = self.verticalScrollBar().value()
        if self._rows.set_rows(rows):
            self._restore(chosen, current.conversation_ids if current is not None else ())
            self.verticalScrollBar().setValue(place)
        self.selected.emit()

    def _restore(self, chosen: set[tuple[int, ...]], current: tuple[int, ...]) -> None:
        model, selection = self.selectionModel(), QItemSelection()
        flags = QItemSelectionModel.SelectionFlag
        for number, row in enumerate(self._rows.rows):
            index = self._rows.index(number, TITLE)
            if row.conversation_ids in chosen:
                selection.select(index, index)
            if row.conversation_ids == current:
                model.setCurrentIndex(index, flags.NoUpdate)
        model.select(selection, flags.ClearAndSelect | flags.Rows)

    def _row(self, index: QModelIndex) -> PrefixRow | None:
        row = index.data(ROW_ROLE)
        return row if isinstance(row, PrefixRow) else None

    def _tell_selection(self) -> None:
        self.selected.emit()

    def _fit_columns(self) -> None:
        """Give each column of figures room for its longest text, and leave out those that have none."""
        room = self.viewport().width() - _LEAST_TITLE_WIDTH
        for column, text in _WIDEST.items():
            self.setColumnHidden(column, False)  # else its name would take no room
            needed = self.fontMetrics().horizontalAdvance(text) + _PADDING
            width = max(self.header().sectionSizeHint(column), needed)
            self.setColumnHidden(column, width > room)
            self.setColumnWidth(column, width)
            room -= width

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: D102
        paint_row(self, painter, option, index)
        super().drawRow(painter, option, index)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self.viewport().update()  # the ring around the current row

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        self._fit_columns()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.opened.emit()
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.deletion_asked.emit()
        else:
            super().keyPressEvent(event)
