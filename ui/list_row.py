"""What is behind the rows of a list: darker when selected or pointed at, ringed where the keyboard is."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QAbstractItemView, QStyle, QStyleOptionViewItem

from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
_RADIUS = 7


def paint_row(view: QAbstractItemView, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
    """Paint what is behind the row of `index`."""
    is_selected = view.selectionModel().isSelected(index)
    is_current = view.hasFocus() and view.currentIndex().siblingAtColumn(0) == index
    is_hovered = bool(option.state & QStyle.StateFlag.State_MouseOver)
    palette = Theme.current().palette
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    row = option.rect.adjusted(0, 1, -1, -1)
    if is_selected or is_hovered:
        painter.setBrush(palette.color("selected" if is_selected else "hover"))
        painter.drawRoundedRect(row, _RADIUS, _RADIUS)
    if is_current:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(palette.color("accent"), 1))
        painter.drawRoundedRect(row.toRectF().adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
    painter.restore()
