"""The table of what is kept on disk: one row for each conversation, in the order that a column gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from ui.plain_text import plain_tip
from ui.prefixes.rows import PrefixRow, figures_of, row_sentence
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole
"""The `PrefixRow` of a cell."""
TITLE, TOKENS, SIZE, SHARED, LAST_USED = range(5)
"""The columns."""
_NAMES = ("Conversation", "Tokens", "On disk", "Shared", "Last used")
_TIPS = (
    "Whose pages these are",
    "Tokens that need not be read again when the conversation goes on",
    "Bytes of its pages",
    "Bytes that other conversations use as well; they stay when this one is deleted",
    "When its pages were last saved or read",
)
_ORDERS: tuple[Callable[[PrefixRow], Any], ...] = (
    lambda row: row.title.casefold(),
    lambda row: row.num_tokens,
    lambda row: row.nbytes,
    lambda row: row.shared_nbytes,
    lambda row: row.last_used,
)


class PrefixTableModel(QAbstractTableModel):
    """Rows with title, tokens, size, what of it is shared, and last use."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[PrefixRow] = []
        self._order = LAST_USED, Qt.SortOrder.DescendingOrder

    @property
    def rows(self) -> list[PrefixRow]:
        """The rows as they are shown."""
        return list(self._rows)

    def set_rows(self, rows: Sequence[PrefixRow]) -> bool:
        """Show other rows, in the order of before; return whether rows came, went or changed places."""
        rows = self._sorted(rows)
        if [_place(row) for row in rows] != [_place(row) for row in self._rows]:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return True
        for number, (old, new) in enumerate(zip(self._rows, rows, strict=True)):
            if old != new:
                self._rows[number] = new
                self.dataChanged.emit(self.index(number, 0), self.index(number, len(_NAMES) - 1))
        return False

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Order the rows by a column."""
        self._order = column, order
        rows = self._sorted(self._rows)
        numbers = {_place(row): number for number, row in enumerate(rows)}
        self.layoutAboutToBeChanged.emit()  # views keep their places by indexes that they make now
        before = self.persistentIndexList()
        after = [self.index(numbers[_place(self._rows[old.row()])], old.column()) for old in before]
        self._rows = rows
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of rows; none has others below it."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of columns."""
        return 0 if parent.isValid() else len(_NAMES)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return the name of a column, and what it means."""
        if orientation is Qt.Orientation.Vertical:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return {Qt.ItemDataRole.DisplayRole: _NAMES, Qt.ItemDataRole.ToolTipRole: _TIPS}.get(
            Qt.ItemDataRole(role), (None,) * len(_NAMES)
        )[section]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a view asks for; the first cell says all of its row to who hears it."""
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.title if column == TITLE else figures_of(row, _now())[column - 1]
            case Qt.ItemDataRole.AccessibleTextRole:
                return row_sentence(row, _now()) if column == TITLE else None
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(row_sentence(row, _now()))
            case Qt.ItemDataRole.DecorationRole:
                return Theme.current().icon("pin", "text") if column == TITLE and row.is_pinned else None
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
        return row if role == ROW_ROLE else None

    def _sorted(self, rows: Sequence[PrefixRow]) -> list[PrefixRow]:
        column, order = self._order
        return sorted(rows, key=_ORDERS[column], reverse=order is Qt.SortOrder.DescendingOrder)


def _now() -> datetime:
    return datetime.now().astimezone()


def _place(row: PrefixRow) -> int:
    """Return what tells a row from the others: its conversation, 0 for the one without."""
    return row.conversation_ids[0] if row.is_conversation else 0


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in (TOKENS, SIZE, SHARED) else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
