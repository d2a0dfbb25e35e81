"""The list of the context ledger: rows that fold, of which several can be selected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    Qt,
    Signal,
)
from PySide6.QtGui import QFocusEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QStyleOptionViewItem, QTreeView, QWidget

from app.ledger.entries import EntryKind, LedgerEntry
from ui.inspector.context.delegate import LedgerDelegate
from ui.inspector.context.model import ENTRY_ROLE, LedgerModel
from ui.list_row import paint_row
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_INDENT = 14
_CHEVRON = 12


class LedgerView(QTreeView):
    """Shows entries and keeps what is open, selected and in sight when they change.

    What a summary stands for is folded away at first, the documents of a turn are not.

    Signals:
        selected: other rows are selected, or what is known of them changed.
    """

    selected = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = LedgerModel(self)
        self._unlike: set[str] = set()
        self._is_filling = False
        self.setModel(self._rows)
        self.setItemDelegate(LedgerDelegate(self))
        self.setAccessibleName("Context of the conversation")
        self.setHeaderHidden(True)
        self.setUniformRowHeights(True)
        self.setIndentation(_INDENT)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.expanded.connect(lambda index: self._remember(index, is_open=True))
        self.collapsed.connect(lambda index: self._remember(index, is_open=False))
        self.selectionModel().selectionChanged.connect(self._on_selection)
        self.selectionModel().currentChanged.connect(self._on_selection)
        Theme.current().changed.connect(self.viewport().update)

    @property
    def current(self) -> LedgerEntry | None:
        """The row that the keyboard is on."""
        index = self.currentIndex()
        return _entry(index) if index.isValid() else None

    @property
    def chosen(self) -> list[LedgerEntry]:
        """The selected rows, from the top."""
        rows = self.selectionModel().selectedRows()
        return [_entry(index) for index in sorted(rows, key=QModelIndex.internalId)]

    def select(self, key: str) -> None:
        """Select a row and bring it into sight, whatever it is folded under."""
        index = self._rows.indexes().get(key)
        if index is not None:
            self.setCurrentIndex(index)
            self.scrollTo(index)

    def set_entries(self, entries: Sequence[LedgerEntry]) -> None:
        """Show other entries; what is open, selected and in sight stays so."""
        chosen, current = [entry.key for entry in self.chosen], self.current
        place = self.verticalScrollBar().value()
        self._is_filling = True
        if self._rows.set_entries(entries):
            self._restore(chosen, current.key if current is not None else "")
            self.verticalScrollBar().setValue(place)
        self._is_filling = False
        self.selected.emit()

    def _restore(self, chosen: Iterable[str], current: str) -> None:
        """Open, select and focus the rows that were so before, as far as they are there."""
        indexes = self._rows.indexes()
        self._unlike &= indexes.keys()
        for key, index in indexes.items():
            if _entry(index).parts:
                self.setExpanded(index, _is_open_at_first(_entry(index)) != (key in self._unlike))
        selection = QItemSelection()
        for key in chosen:
            if key in indexes:
                selection.select(indexes[key], indexes[key])
        model = self.selectionModel()
        if current in indexes:
            model.setCurrentIndex(indexes[current], QItemSelectionModel.SelectionFlag.NoUpdate)
        model.select(selection, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def _remember(self, index: QModelIndex, *, is_open: bool) -> None:
        entry = _entry(index)
        if is_open == _is_open_at_first(entry):
            self._unlike.discard(entry.key)
        else:
            self._unlike.add(entry.key)

    def _on_selection(self) -> None:
        if not self._is_filling:
            self.selected.emit()

    # Painting.

    def drawRow(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:  # noqa: D102
        paint_row(self, painter, option, index)
        super().drawRow(painter, option, index)

    def drawBranches(self, painter: QPainter, rect: QRect, index: Index) -> None:  # noqa: D102
        if self._rows.rowCount(index):
            icon = Theme.current().icon("chevron-down" if self.isExpanded(index) else "chevron-right")
            left = rect.right() - (_INDENT + _CHEVRON) // 2 + 1
            icon.paint(painter, QRect(left, rect.center().y() - _CHEVRON // 2, _CHEVRON, _CHEVRON))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        if self.currentIndex().isValid() and self.chosen:
            self.scrollTo(self.currentIndex())  # what is told of a row below the list must not push it out

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self.viewport().update()  # the ring around the current row


def _entry(index: Index) -> LedgerEntry:
    entry = index.data(ENTRY_ROLE)
    assert isinstance(entry, LedgerEntry)
    return entry


def _is_open_at_first(entry: LedgerEntry) -> bool:
    return entry.kind is EntryKind.TURN
