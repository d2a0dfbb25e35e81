"""The conversation list as rows: conversations under headings by age."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal

from app.store.records import Conversation
from ui.plain_text import plain_tip

Index = QModelIndex | QPersistentModelIndex
Row = str | Conversation
CONVERSATION_ROLE = Qt.ItemDataRole.UserRole
"""The `Conversation` of a row, None for a heading."""
WRITING_ROLE = Qt.ItemDataRole.UserRole + 1
"""Whether a reply is being written in the conversation."""


def group_title(updated_at: datetime, now: datetime) -> str:
    """Return the heading for a conversation by the local calendar day of its last change."""
    days = (now.astimezone().date() - updated_at.astimezone().date()).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    return "Previous 7 days" if days <= 7 else "Older"


def age_text(updated_at: datetime, now: datetime) -> str:
    """Return the time of the last change in words, such as `today at 14:05` or `3 October 2026`."""
    local, today = updated_at.astimezone(), now.astimezone().date()
    if local.date() == today:
        return f"today at {local:%H:%M}"
    if local.date() == today - timedelta(days=1):
        return f"yesterday at {local:%H:%M}"
    return f"{local.day} {local:%B %Y}"


def rows_of(conversations: Sequence[Conversation], now: datetime) -> list[Row]:
    """Return `conversations`, pinned first and newest first, with a heading before each group."""
    rows: list[Row] = []
    heading = None
    for conversation in conversations:
        title = "Pinned" if conversation.pinned else group_title(conversation.updated_at, now)
        if title != heading:
            rows.append(title)
            heading = title
        rows.append(conversation)
    return rows


class ConversationListModel(QAbstractListModel):
    """Rows are headings (text only, not selectable) and conversations (title editable).

    Signals:
        renamed: id and new title, when the user edited a title in place.
    """

    renamed = Signal(int, str)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._writing_id: int | None = None

    def set_conversations(self, conversations: Sequence[Conversation]) -> None:
        """Show `conversations` in the order given."""
        self.beginResetModel()
        self._rows = rows_of(conversations, datetime.now().astimezone())
        self.endResetModel()

    def set_writing(self, conversation_id: int | None) -> None:
        """Mark the conversation in which a reply is being written."""
        if conversation_id == self._writing_id:
            return
        self._writing_id = conversation_id
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1), [WRITING_ROLE])

    def index_of(self, conversation_id: int | None) -> QModelIndex:
        """Return the index of a conversation, an invalid one when it is not shown."""
        for row, item in enumerate(self._rows):
            if isinstance(item, Conversation) and item.id == conversation_id:
                return self.index(row)
        return QModelIndex()

    def conversations(self) -> list[Conversation]:
        """Return what is shown, in order."""
        return [row for row in self._rows if isinstance(row, Conversation)]

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        """Return the number of rows, headings included."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a view asks for."""
        row = self._rows[index.row()]
        if isinstance(row, str):
            return row if role == Qt.ItemDataRole.DisplayRole else None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == CONVERSATION_ROLE:
            return row
        if role == WRITING_ROLE:
            return row.id == self._writing_id
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleDescriptionRole):
            words = f"{row.title}\nLast changed {age_text(row.updated_at, datetime.now().astimezone())}"
            return plain_tip(words) if role == Qt.ItemDataRole.ToolTipRole else words
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Take a new title from the editor; an empty one changes nothing."""
        row, title = self._rows[index.row()], " ".join(str(value).split())
        if role != Qt.ItemDataRole.EditRole or isinstance(row, str) or not title or title == row.title:
            return False
        self.renamed.emit(row.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Headings take no part in selection."""
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
