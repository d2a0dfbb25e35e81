"""One stretch of a document's text, laid out, with page numbers beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QMimeData, QPoint, QRectF, Qt, QUrl, Signal
from PySide6.QtGui import (
    QFont,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from ui.markdown.document import QuietDocument
from ui.markdown.style import MarkdownStyle
from ui.theme import Theme

_LEFT = 16
_RIGHT = 8
_BAR = 3
_LINE_HEIGHT = 130.0
_SELECTING = {
    QKeySequence.StandardKey.SelectNextChar: QTextCursor.MoveOperation.Right,
    QKeySequence.StandardKey.SelectPreviousChar: QTextCursor.MoveOperation.Left,
    QKeySequence.StandardKey.SelectNextWord: QTextCursor.MoveOperation.WordRight,
    QKeySequence.StandardKey.SelectPreviousWord: QTextCursor.MoveOperation.WordLeft,
    QKeySequence.StandardKey.SelectNextLine: QTextCursor.MoveOperation.Down,
    QKeySequence.StandardKey.SelectPreviousLine: QTextCursor.MoveOperation.Up,
    QKeySequence.StandardKey.SelectStartOfLine: QTextCursor.MoveOperation.StartOfLine,
    QKeySequence.StandardKey.SelectEndOfLine: QTextCursor.MoveOperation.EndOfLine,
}
"""Keys that select, and where they move the end of what is selected."""


@dataclass(frozen=True)
class Mark:
    """Something that begins at a position of the text: a heading of a level, or a page with its number."""

    position: int
    number: int


class PageView(QTextEdit):
    """Text to read, scroll and copy from; it never loads anything.

    With Shift, keys select from the passage on, or from the first line that is seen.

    Args:
        selected_text: tells what is selected of the whole document, of which more may be out of the stretch.

    Attributes:
        is_resizing: whether lines are being broken anew; what is scrolled then is not scrolled by the user.

    Signals:
        resized: lines were broken anew, for another width.
        start_wanted, end_wanted: the keyboard asks for the beginning or the end of the whole document.
    """

    resized = Signal()
    start_wanted = Signal()
    end_wanted = Signal()

    def __init__(self, selected_text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_resizing = False
        self._selected_text = selected_text
        self._pages: Sequence[Mark] = ()
        self._passage = (0, 0)
        self.setDocument(QuietDocument(self))
        self.setReadOnly(True)
        # Without a caret the arrow keys scroll, from where one is and not from where the caret was left.
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAcceptDrops(False)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName("Text of the document")

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: D102
        return None

    def show_text(self, text: str, headings: Sequence[Mark], pages: Sequence[Mark], *, is_code: bool) -> None:
        """Show text from its top, its headings larger and page numbers beside it, code in a code font."""
        style = MarkdownStyle.current()
        document = self.document()
        assert isinstance(document, QuietDocument)
        document.apply_style(style)
        if is_code:
            document.setDefaultFont(style.mono)
        self._pages = pages
        self.setPlainText(text)
        self._set_margins()
        cursor = QTextCursor(document)
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        lines = QTextBlockFormat()
        lines.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.mergeBlockFormat(lines)
        for heading in headings:
            self._enlarge(cursor, heading, style)
        cursor.endEditBlock()
        document.setTextWidth(self.viewport().width())
        self._finish_layout()

    @property
    def first_position(self) -> int:
        """The first character that is seen."""
        return self.cursorForPosition(QPoint(_LEFT, 1)).position()

    @property
    def last_position(self) -> int:
        """The last character that is seen."""
        return self.cursorForPosition(self.viewport().rect().bottomRight()).position()

    def top_of(self, position: int) -> int:
        """Return where the line with a character is, in pixels below the top of the view."""
        return self.cursorRect(self._cursor_at(position)).top()

    def put(self, position: int, top: int) -> None:
        """Scroll until the line with a character is `top` pixels below the top of the view, or near that."""
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self.top_of(position) - top)

    def set_passage(self, start: int, stop: int) -> None:
        """Put a bar beside the lines from one position to before another; none where they are equal."""
        self._passage = (start, stop)
        self.viewport().update()

    def selection(self, start: int, stop: int, form: QTextCharFormat) -> QTextEdit.ExtraSelection:
        """Return a mark on the characters from `start` to before `stop`."""
        made = QTextEdit.ExtraSelection()
        cursor = self._cursor_at(start)
        cursor.setPosition(stop, QTextCursor.MoveMode.KeepAnchor)
        made.cursor, made.format = cursor, form
        return made

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        self.is_resizing = True
        super().resizeEvent(event)
        self._finish_layout()
        self.is_resizing = False
        self.resized.emit()

    def createMimeDataFromSelection(self) -> QMimeData:  # noqa: D102
        data = QMimeData()
        data.setText(self._selected_text())
        return data

    def select(self, anchor: int, position: int) -> None:
        """Select the characters between two positions; none where they are equal."""
        cursor = self._cursor_at(anchor)
        cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        move = next((move for key, move in _SELECTING.items() if event.matches(key)), None)
        if move is not None:
            self._extend_selection(move)
        elif event.matches(QKeySequence.StandardKey.Copy) and self._selected_text():
            QGuiApplication.clipboard().setMimeData(self.createMimeDataFromSelection())
        elif event.matches(QKeySequence.StandardKey.MoveToStartOfDocument) or event.key() == Qt.Key.Key_Home:
            self.start_wanted.emit()
        elif event.matches(QKeySequence.StandardKey.MoveToEndOfDocument) or event.key() == Qt.Key.Key_End:
            self.end_wanted.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        self._paint_bar(painter)
        if self._pages:
            self._paint_numbers(painter)

    def _extend_selection(self, move: QTextCursor.MoveOperation) -> None:
        cursor = self.textCursor()
        if not cursor.hasSelection():
            first, last = self.first_position, self.last_position
            start, stop = self._passage
            cursor.setPosition(start if start < stop and first <= start <= last else first)
        cursor.movePosition(move, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)
        self.ensureCursorVisible()

    def _paint_bar(self, painter: QPainter) -> None:
        """Paint a bar beside the lines of the passage."""
        start, stop = self._passage
        first, last = max(start, self.first_position), min(stop, self.last_position)
        if start < stop and first <= last:
            top, bottom = (self.cursorRect(self._cursor_at(each)) for each in (first, last))
            area = QRectF(_LEFT // 2 - _BAR, top.top(), _BAR, bottom.bottom() - top.top())
            painter.fillRect(area, Theme.current().palette.color("accent"))

    def _paint_numbers(self, painter: QPainter) -> None:
        """Paint the number of each page beside the line in which it begins."""
        palette = Theme.current().palette
        metrics = QFontMetrics(self._number_font())
        painter.setFont(self._number_font())
        first, last = self.first_position, self.last_position
        for page in self._pages:
            if first <= page.position <= last:
                rect = self.cursorRect(self._cursor_at(page.position))
                right = self.viewport().width() - _RIGHT
                painter.setPen(QPen(palette.color("border_strong"), 1))
                painter.drawLine(right - self._number_width(), rect.top(), right, rect.top())
                painter.setPen(palette.color("text_faint"))
                place = QRectF(0, rect.top() + 2, right, metrics.height())
                painter.drawText(place, Qt.AlignmentFlag.AlignRight, f"p. {page.number:,}")

    def _finish_layout(self) -> None:
        """Lay out all of it now: what is scrolled to must have its height, and Qt tells of it too late."""
        self.document().pageCount()
        self.document().documentLayout().documentSizeChanged.emit(self.document().size())

    def _cursor_at(self, position: int) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(max(0, min(position, self.document().characterCount() - 1)))
        return cursor

    def _enlarge(self, cursor: QTextCursor, heading: Mark, style: MarkdownStyle) -> None:
        cursor.setPosition(heading.position)
        cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock, QTextCursor.MoveMode.KeepAnchor)
        form = QTextCharFormat()
        form.setFontWeight(QFont.Weight.DemiBold)
        form.setFontPointSize(style.heading_size(heading.number) * 0.9)
        cursor.mergeCharFormat(form)
        above = QTextBlockFormat()
        above.setTopMargin(style.em * 0.6)
        cursor.mergeBlockFormat(above)

    def _set_margins(self) -> None:
        """Leave room for page numbers beside the text."""
        frame = self.document().rootFrame()
        margins = frame.frameFormat()
        margins.setLeftMargin(_LEFT)
        margins.setTopMargin(10)
        margins.setBottomMargin(24)
        margins.setRightMargin(self._number_width() + 2 * _RIGHT if self._pages else _LEFT)
        frame.setFrameFormat(margins)

    def _number_width(self) -> int:
        most = max((page.number for page in self._pages), default=1)
        return QFontMetrics(self._number_font()).horizontalAdvance(f"p. {most:,}")

    def _number_font(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.85)
        return font
