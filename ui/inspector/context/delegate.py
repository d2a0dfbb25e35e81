"""How a row of the context ledger is painted: two lines, its kind's icon, and a bar for its heat."""

from __future__ import annotations

import math

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from app.ledger.entries import EntryKind, LedgerEntry
from ui.inspector.context.model import ENTRY_ROLE
from ui.inspector.context.words import figures_text, title_text, tokens_text
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex
KIND_LOOKS = {
    EntryKind.SYSTEM: ("settings", "span_system"),
    EntryKind.DOCUMENT: ("file-text", "span_document"),
    EntryKind.TURN: ("chat", "span_turn"),
    EntryKind.SUMMARY: ("summary", "span_summary"),
}
"""The icon of each kind and the role of its colour."""
_ICON, _PIN, _GAP = 16, 14, 6
_PADDING = 5
_BAR_WIDTH, _BAR_HEIGHT = 34, 4
_WIDEST = 8
"""What gets so many times more attention than the average, or less, has the longest or shortest bar."""
_SMALL = 0.88


class LedgerDelegate(QStyledItemDelegate):
    """Paints the contents of rows, all of one height; the view paints what is behind them."""

    def sizeHint(self, option: QStyleOptionViewItem, _index: Index) -> QSize:
        """Return room for two lines."""
        small = QFontMetrics(_small(option.font))
        return QSize(120, option.fontMetrics.height() + small.height() + 2 * _PADDING + 1)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """Paint a row."""
        entry = index.data(ENTRY_ROLE)
        if not isinstance(entry, LedgerEntry):
            return
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        room = option.rect.adjusted(0, _PADDING, -_GAP, -_PADDING)
        first = QRect(room.left(), room.top(), room.width(), option.fontMetrics.height())
        second = QRect(room.left(), first.bottom() + 2, room.width(), room.bottom() - first.bottom() - 1)
        icon, role = KIND_LOOKS[entry.kind]
        mark = QRect(first.left(), first.center().y() - _ICON // 2 + 1, _ICON, _ICON)
        Theme.current().icon(icon, role if entry.state.is_in_context else "text_faint").paint(painter, mark)
        indent = _ICON + _GAP
        _paint_first_line(painter, option, first.adjusted(indent, 0, 0, 0), entry)
        _paint_second_line(painter, option, second.adjusted(indent, 0, 0, 0), entry)
        painter.restore()


def _paint_first_line(
    painter: QPainter, option: QStyleOptionViewItem, line: QRect, entry: LedgerEntry
) -> None:
    palette, metrics = Theme.current().palette, option.fontMetrics
    is_read = entry.state.is_in_context
    painter.setFont(option.font)
    painter.setPen(palette.color("text" if is_read else "text_muted"))
    tokens = tokens_text(entry)
    painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, tokens)
    right = metrics.horizontalAdvance(tokens) + _GAP
    if entry.is_pinned:
        mark = QRect(line.right() - right - _PIN + 1, line.center().y() - _PIN // 2 + 1, _PIN, _PIN)
        Theme.current().icon("pin", "text").paint(painter, mark)
        right += _PIN + _GAP
    room = line.adjusted(0, 0, -right, 0)
    title = metrics.elidedText(title_text(entry), Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, title)


def _paint_second_line(
    painter: QPainter, option: QStyleOptionViewItem, line: QRect, entry: LedgerEntry
) -> None:
    palette = Theme.current().palette
    font = _small(option.font)
    is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
    painter.setFont(font)
    painter.setPen(palette.color("text_muted" if is_selected else "text_faint"))
    level = heat_level(entry)
    right = 0 if level is None else _BAR_WIDTH + _GAP
    room = line.adjusted(0, 0, -right, 0)
    text = QFontMetrics(font).elidedText(figures_text(entry), Qt.TextElideMode.ElideRight, room.width())
    painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
    if level is not None:
        left, top = line.right() - _BAR_WIDTH + 1, line.center().y() - _BAR_HEIGHT / 2 + 1
        painter.setPen(Qt.PenStyle.NoPen)
        for role, share in (("border_strong", 1.0), ("tier_hot", level)):
            painter.setBrush(palette.color(role))
            width = max(_BAR_HEIGHT, share * _BAR_WIDTH)
            painter.drawRoundedRect(QRectF(left, top, width, _BAR_HEIGHT), 2, 2)


def heat_level(entry: LedgerEntry) -> float | None:
    """Return how long the bar of a row's heat is, 0 to 1, half for the average; None without one.

    Equal steps are equal factors, as in the page map.
    """
    if entry.heat_rate is None:
        return None
    rate = min(max(entry.heat_rate, 1 / _WIDEST), _WIDEST)
    return (math.log(rate, _WIDEST) + 1) / 2


def _small(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * _SMALL)
    return small
