"""The context ledger as rows in rows: what a summary stands for below it, documents below their turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.ledger.entries import LedgerEntry
from ui.inspector.context.words import row_sentence, tip_text
from ui.plain_text import plain_tip

Index = QModelIndex | QPersistentModelIndex
ENTRY_ROLE = Qt.ItemDataRole.UserRole
"""The `LedgerEntry` of a row."""


@dataclass
class _Node:
    """A row.

    Attributes:
        entry: what it shows.
        parent: number of the row that it is below, -1 for none.
        row: its place among its siblings.
        children: numbers of the rows below it.
    """

    entry: LedgerEntry
    parent: int
    row: int
    children: list[int] = field(default_factory=list)


class LedgerModel(QAbstractItemModel):
    """Rows are `LedgerEntry`s; while these stay the same in number and place, only what changed is told.

    The internal ids of their indexes count them from the top.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._nodes: list[_Node] = []
        self._top: list[int] = []

    def set_entries(self, entries: Sequence[LedgerEntry]) -> bool:
        """Show other entries; return whether rows came, went or moved, so that a view has to begin anew."""
        nodes, top = _nodes_of(entries)
        if [_place(node) for node in nodes] != [_place(node) for node in self._nodes]:
            self.beginResetModel()
            self._nodes, self._top = nodes, top
            self.endResetModel()
            return True
        for number, (old, new) in enumerate(zip(self._nodes, nodes, strict=True)):
            if old.entry != new.entry:
                old.entry = new.entry
                index = self._index(number)
                self.dataChanged.emit(index, index)
        return False

    def indexes(self) -> dict[str, QModelIndex]:
        """Return the index of each row by its entry's key, from the top."""
        return {node.entry.key: self._index(number) for number, node in enumerate(self._nodes)}

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        """Return the index of a row below another."""
        numbers = self._children(parent)
        if column or not 0 <= row < len(numbers):
            return QModelIndex()
        return self.createIndex(row, 0, numbers[row])

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008
        """Return the index of the row that another is below."""
        if not index.isValid():
            return QModelIndex()
        number = self._nodes[int(index.internalId())].parent
        return self._index(number) if number >= 0 else QModelIndex()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of rows below another."""
        return len(self._children(parent))

    def columnCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return one column: a delegate paints all of a row."""
        return 1

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a view asks for; the text is for who hears it, as a delegate paints the row."""
        if not index.isValid():
            return None
        entry = self._nodes[int(index.internalId())].entry
        if role == ENTRY_ROLE:
            return entry
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return row_sentence(entry)
        return plain_tip(tip_text(entry)) if role == Qt.ItemDataRole.ToolTipRole else None

    def _children(self, parent: Index) -> list[int]:
        return self._nodes[int(parent.internalId())].children if parent.isValid() else self._top

    def _index(self, number: int) -> QModelIndex:
        return self.createIndex(self._nodes[number].row, 0, number)


def _place(node: _Node) -> tuple[str, int]:
    return node.entry.key, node.parent


def _nodes_of(entries: Sequence[LedgerEntry]) -> tuple[list[_Node], list[int]]:
    """Return all rows, each before those below it, and the numbers of those below none."""
    nodes: list[_Node] = []

    def add(entry: LedgerEntry, parent: int, row: int) -> int:
        number = len(nodes)
        node = _Node(entry, parent, row)
        nodes.append(node)
        node.children = [add(part, number, place) for place, part in enumerate(entry.parts)]
        return number

    return nodes, [add(entry, -1, row) for row, entry in enumerate(entries)]
