"""A cell for each segment of a document: what came of reading it."""

from __future__ import annotations

import enum

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.reading.records import SegmentState
from app.reading.shown import Coverage, ShownSegment
from ui.plain_text import plain_tip
from ui.theme import Theme

_HEIGHT = 16
_GAP = 2
_LEAST_WIDTH = 6
_MOST_WIDTH = 22
_ROW_GAP = 3
_MOST_NOTE_CHARS = 400
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class CellKind(enum.Enum):
    """What came of a segment; the value is how it is said."""

    SAID = "says something about the question"
    SILENT = "says nothing about the question"
    FAILED = "could not be read"
    UNREAD = "has not been read"


def cell_kind(shown: ShownSegment) -> CellKind:
    """Return what came of a segment."""
    state = shown.segment.state
    if state is SegmentState.READ:
        return CellKind.SAID if shown.segment.note else CellKind.SILENT
    return CellKind.FAILED if state is SegmentState.FAILED else CellKind.UNREAD


def cell_words(shown: ShownSegment, number: int) -> str:
    """Return what is told of a segment: its number, its place, and the note or the error."""
    place = shown.place.sentence_words
    words = f"Segment {number:,}{f' ({place})' if place else ''} {cell_kind(shown).value}."
    segment = shown.segment
    if segment.is_extract:
        words = f"{words} In the words of the document:"
    note = segment.note if len(segment.note) <= _MOST_NOTE_CHARS else f"{segment.note[:_MOST_NOTE_CHARS]}…"
    return "\n".join(filter(None, (words, note or segment.error)))


class CoverageStrip(QWidget):
    """Paints the cells in as few rows as they need; arrow keys walk, Enter and a click open a segment.

    Cells are told apart by their shape as well: full, a low line, a crossed box, an empty box.

    Attributes:
        current: the cell that the keyboard is on.

    Signals:
        chosen(int): open the segment of this cell.
    """

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._segments: tuple[ShownSegment, ...] = ()
        self._kinds: list[CellKind] = []
        self.current = 0
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        Theme.current().changed.connect(self.update)

    def show_coverage(self, coverage: Coverage) -> None:
        """Show what came of the segments so far; the keyboard stays on its cell."""
        self._segments = coverage.segments
        self._kinds = [cell_kind(each) for each in self._segments]
        self.current = min(self.current, max(0, len(self._kinds) - 1))
        self.setAccessibleName(f"Segments of {coverage.title}")
        self._tell()
        self.updateGeometry()
        self.update()

    def cell_rect(self, index: int) -> QRect:
        """Return where a cell lies."""
        width, in_row = self._grid(self.width())
        row, column = divmod(index, in_row)
        rect = QRect(column * (width + _GAP) + 1, row * (_HEIGHT + _ROW_GAP) + 1, width, _HEIGHT)
        if self.layoutDirection() == Qt.LayoutDirection.RightToLeft:
            rect.moveLeft(self.width() - rect.left() - rect.width())
        return rect

    def cell_at(self, point: QPoint) -> int | None:
        """Return the cell at a place, None between cells."""
        found = (index for index in range(len(self._kinds)) if self.cell_rect(index).contains(point))
        return next(found, None)

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        _, in_row = self._grid(width)
        rows = max(1, -(-len(self._kinds) // in_row))
        return rows * (_HEIGHT + _ROW_GAP) - _ROW_GAP + 2

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(300, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(60, _HEIGHT + 2)

    def event(self, event: QEvent) -> bool:  # noqa: D102
        if isinstance(event, QHelpEvent) and event.type() is QEvent.Type.ToolTip:
            index = self.cell_at(event.pos())
            if index is None:
                QToolTip.hideText()
            else:
                words = plain_tip(cell_words(self._segments[index], index + 1))
                QToolTip.showText(event.globalPos(), words, self, self.cell_rect(index))
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for index, kind in enumerate(self._kinds):
            rect = self.cell_rect(index)
            if rect.intersects(event.rect()):
                _paint_cell(painter, rect, kind)
        if self.hasFocus() and self._kinds:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(Theme.current().palette.color("text"), 1.5))
            ring = self.cell_rect(self.current).toRectF().adjusted(-0.5, -0.5, 0.5, 0.5)
            painter.drawRoundedRect(ring, 3, 3)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        index = self.cell_at(event.position().toPoint())
        if index is not None and event.button() == Qt.MouseButton.LeftButton:
            self._go(index)
            self.chosen.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        key = Qt.Key(event.key())
        last = len(self._kinds) - 1
        if last < 0:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.chosen.emit(self.current)
        elif key in _STEPS:
            self._go(min(max(0, self.current + _STEPS[key]), last))
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._go(0 if key is Qt.Key.Key_Home else last)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        super().focusOutEvent(event)
        self.update()

    def _go(self, index: int) -> None:
        self.current = index
        self._tell()
        self.update()

    def _tell(self) -> None:
        """Have the cell that the keyboard is on read aloud."""
        if self._segments:
            words = cell_words(self._segments[self.current], self.current + 1)
            is_new = words != self.accessibleDescription()
            self.setAccessibleDescription(words)
            if self.hasFocus() and is_new:
                QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, words))

    def _grid(self, width: int) -> tuple[int, int]:
        """Return the width of a cell, and how many there are in a row."""
        count = max(1, len(self._kinds))
        room = max(width - 2, _LEAST_WIDTH)
        cell = min(_MOST_WIDTH, max(_LEAST_WIDTH, (room + _GAP) // count - _GAP))
        return cell, max(1, (room + _GAP) // (cell + _GAP))


def _paint_cell(painter: QPainter, rect: QRect, kind: CellKind) -> None:
    palette = Theme.current().palette
    painter.setPen(Qt.PenStyle.NoPen)
    if kind is CellKind.SAID:
        painter.setBrush(palette.color("accent"))
        painter.drawRoundedRect(rect, 2, 2)
    elif kind is CellKind.SILENT:
        painter.setBrush(palette.color("text_faint"))
        painter.drawRoundedRect(rect.adjusted(0, rect.height() - 5, 0, 0), 2, 2)
    else:
        role = "danger" if kind is CellKind.FAILED else "border_strong"
        painter.setPen(QPen(palette.color(role), 1))
        painter.setBrush(palette.color("danger_soft") if kind is CellKind.FAILED else Qt.BrushStyle.NoBrush)
        box = rect.toRectF().adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(box, 2, 2)
        if kind is CellKind.FAILED:
            painter.drawLine(box.topLeft(), box.bottomRight())
            painter.drawLine(box.topRight(), box.bottomLeft())
