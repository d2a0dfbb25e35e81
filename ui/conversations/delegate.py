"""How a row of the conversation list is painted and edited."""

from __future__ import annotations

from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QMouseEvent, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.store.records import Conversation
from ui.conversations.list_model import CONVERSATION_ROLE, WRITING_ROLE
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_MARGIN = 8
_ICON = 16


class ConversationDelegate(QStyledItemDelegate):
    """Paints headings and titles; a row under the pointer has a button for its menu.

    Attributes:
        is_editing: whether a title is being changed now.

    Signals:
        menu_requested: id of the conversation whose menu button was clicked.
        editing_ended: the title's editor is gone.
    """

    menu_requested = Signal(int)
    editing_ended = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.is_editing = False

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        """Return one height for all rows, which keeps long lists fast."""
        return QSize(80, option.fontMetrics.height() + 17)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a heading or a conversation."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        conversation = index.data(CONVERSATION_ROLE)
        if isinstance(conversation, Conversation):
            self._paint_conversation(painter, option, index, conversation)
        else:
            self._paint_heading(painter, option, str(index.data()))
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        """Return a line edit for the title."""
        editor = QLineEdit(parent)
        editor.setAccessibleName("Title of the conversation")
        editor.setMaxLength(200)
        editor.setText(str(index.data(Qt.ItemDataRole.EditRole)))
        self.is_editing = True
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """Leave what is being typed alone: the view calls this whenever a row changes."""

    def destroyEditor(self, editor: QWidget, index: Index) -> None:
        """Take the editor away and tell of it."""
        super().destroyEditor(editor, index)
        self.is_editing = False
        self.editing_ended.emit()

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: Index) -> None:
        """Let the editor fill the row."""
        editor.setGeometry(_row_rect(option))

    def editorEvent(
        self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index
    ) -> bool:
        """Open the menu when its button is clicked."""
        conversation = index.data(CONVERSATION_ROLE)
        if (
            isinstance(event, QMouseEvent)
            and event.type() == QEvent.Type.MouseButtonRelease
            and event.button() == Qt.MouseButton.LeftButton
            and isinstance(conversation, Conversation)
            and _menu_rect(option).contains(event.position().toPoint())
        ):
            self.menu_requested.emit(conversation.id)
            return True
        return super().editorEvent(event, model, option, index)

    def _paint_heading(self, painter: QPainter, option: QStyleOptionViewItem, text: str) -> None:
        font = QFont(option.font)
        font.setPointSizeF(font.pointSizeF() * 0.88)
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(Theme.current().palette.color("text_faint"))
        rect = option.rect.adjusted(2 * _MARGIN, 0, -_MARGIN, -5)
        painter.drawText(rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom, text)

    def _paint_conversation(
        self, painter: QPainter, option: QStyleOptionViewItem, index: Index, conversation: Conversation
    ) -> None:
        theme = Theme.current()
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
        row = _row_rect(option)
        if selected or hovered:
            painter.setBrush(theme.palette.color("selected" if selected else "hover"))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawRoundedRect(row, 8, 8)
        if selected and option.state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.palette.color("accent"))
            painter.drawRoundedRect(row.adjusted(0, 0, -1, -1), 8, 8)
        text = row.adjusted(_MARGIN, 0, -_MARGIN, 0)
        mark = QRect(text.right() - _ICON, row.center().y() - _ICON // 2, _ICON, _ICON)
        if hovered:
            theme.icon("more").paint(painter, mark)
        elif index.data(WRITING_ROLE):
            painter.setBrush(theme.palette.color("accent"))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawEllipse(mark.adjusted(4, 4, -4, -4))
        elif conversation.pinned:
            theme.icon("pin", "text_faint").paint(painter, mark)
        if hovered or conversation.pinned or index.data(WRITING_ROLE):
            text.setRight(mark.left() - 6)
        painter.setFont(option.font)
        painter.setPen(theme.palette.color("text"))
        title = option.fontMetrics.elidedText(conversation.title, Qt.TextElideMode.ElideRight, text.width())
        painter.drawText(text, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, title)


def _row_rect(option: QStyleOptionViewItem) -> QRect:
    return QRect(option.rect.adjusted(_MARGIN, 1, -_MARGIN, -1))


def _menu_rect(option: QStyleOptionViewItem) -> QRect:
    row = _row_rect(option)
    return QRect(row.right() - _ICON - 2 * _MARGIN, row.top(), _ICON + 2 * _MARGIN, row.height())
