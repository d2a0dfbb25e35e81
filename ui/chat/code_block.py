"""A fenced code block: language, copy button, coloured text."""

from __future__ import annotations

import math
from typing import Any

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QTimer, QTimerEvent, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QCursor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextLayout,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from ui.chat.buttons import CopyButton
from ui.chat.text_view import SCROLL_KEYS, SELECTION_KEYS, kept_selection
from ui.markdown.document import QuietDocument
from ui.markdown.highlight import ColorSpan, Highlighter
from ui.markdown.style import PARAGRAPH_GAP, MarkdownStyle
from ui.theme import Theme

_SLICE_S = 0.006
_TAB_COLUMNS = 4
_PADDING, _BAR_INSET = 14, 6


class CodeBlock(QFrame):
    """Code in a frame; long lines scroll sideways.

    Signals:
        drag_moved: the mouse moves with a selection in hand, at this global position.
    """

    drag_moved = Signal(QPoint)

    def __init__(self, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._language = ""
        self._is_final = False
        self._left = 0
        self._highlighter: Highlighter | None = None
        self._label = QLabel()
        self._label.setProperty("kind", "faint")
        self._copy = CopyButton("Copy code", self._code, self)
        self._text = CodeText(self)
        self._text.drag_moved.connect(self.drag_moved)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._color_slice)
        header = QHBoxLayout()
        header.setContentsMargins(_PADDING, 4, 5, 0)
        header.addWidget(self._label)
        header.addStretch()
        header.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(header)
        inset = QHBoxLayout()
        inset.setContentsMargins(_BAR_INSET, 0, _BAR_INSET, 3)
        inset.addWidget(self._text)
        layout.addLayout(inset)
        self._style_now = style
        self.apply_style(style)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The copy button and the text."""
        return [self._copy, self._text]

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts and colours from `style`."""
        self._style_now = style
        self._text.apply_style(style)
        self._place_frame()
        self._start_coloring()
        self.update()

    def show_code(self, code: str, language: str) -> None:
        """Show `code` so far; where it only grew, only what is new costs anything."""
        self._language = language
        self._label.setText(language or "text")
        self._text.setAccessibleName(f"Code, {language}" if language else "Code")
        self._text.show_code(code)

    def set_indent(self, left: int) -> None:
        """Move the frame in by `left` pixels."""
        self._left = left
        self._place_frame()

    def finish(self) -> None:
        """Say that the code is complete; it gets its colours now."""
        self._is_final = True
        self._start_coloring()

    def _place_frame(self) -> None:
        self.setContentsMargins(self._left, 0, 0, round(self._style_now.em * PARAGRAPH_GAP))

    def _code(self) -> str:
        return self._text.toPlainText()

    def _start_coloring(self) -> None:
        if not self._is_final:
            return
        self._text.clear_colors()
        self._highlighter = Highlighter(self._code(), self._language, is_dark=self._style_now.is_dark)
        self._color_slice()

    def _color_slice(self) -> None:
        assert self._highlighter is not None
        spans, is_done = self._highlighter.advance(_SLICE_S)
        self._text.add_colors(spans)
        if is_done:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = Theme.current().palette
        painter.setPen(QPen(palette.color("accent" if self._text.hasFocus() else "border"), 1))
        painter.setBrush(palette.color("code"))
        frame = QRectF(self.contentsRect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(frame, 9, 9)


class CodeText(QTextEdit):
    """Unwrapped, read-only code, as high as its lines.

    Signals:
        drag_moved: the mouse moves with a selection in hand, at this global position.
    """

    drag_moved = Signal(QPoint)

    def __init__(self, frame: QWidget) -> None:
        super().__init__(frame)
        self._frame = frame
        document = QuietDocument(self)
        document.setDocumentMargin(0)
        option = document.defaultTextOption()
        option.setTextDirection(Qt.LayoutDirection.LeftToRight)
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        document.setDefaultTextOption(option)
        self.setDocument(document)
        self._shown = ""
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setViewportMargins(_PADDING - _BAR_INSET, 2, _PADDING - _BAR_INSET, 8)
        self.setAcceptDrops(False)
        self.setCursorWidth(0)
        self.viewport().setAutoFillBackground(False)
        document.documentLayout().documentSizeChanged.connect(self.updateGeometry)

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take the font from `style`."""
        self.setFont(style.mono)
        self.document().setDefaultFont(style.mono)
        metrics = QFontMetricsF(style.mono)
        self.setTabStopDistance(metrics.horizontalAdvance(" ") * _TAB_COLUMNS)
        height = QTextBlockFormat()
        height.setLineHeight(
            math.ceil(metrics.height() * 1.22), QTextBlockFormat.LineHeightTypes.FixedHeight.value
        )
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(height)

    def show_code(self, code: str) -> None:
        """Show `code`, appending where what is shown is its beginning."""
        cursor = QTextCursor(self.document())
        with kept_selection(self):
            if code.startswith(self._shown):
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(code[len(self._shown) :])
            else:
                cursor.select(QTextCursor.SelectionType.Document)
                cursor.insertText(code)
        self._shown = code

    def add_colors(self, spans: list[ColorSpan]) -> None:
        """Colour pieces of lines; the text itself and its layout stay as they are."""
        by_line: dict[int, list[QTextLayout.FormatRange]] = {}
        for span in spans:
            piece = QTextLayout.FormatRange()
            piece.start, piece.length = span.start, span.length
            piece.format = QTextCharFormat()
            piece.format.setForeground(QColor(span.color))
            by_line.setdefault(span.line, []).append(piece)
        batch = QTextCursor(self.document())
        batch.beginEditBlock()
        for line, pieces in by_line.items():
            layout = self.document().findBlockByNumber(line).layout()
            layout.setFormats(layout.formats() + pieces)
        batch.endEditBlock()

    def clear_colors(self) -> None:
        """Take all colours away."""
        block = self.document().begin()
        while block.isValid():
            block.layout().clearFormats()
            block = block.next()

    def sizeHint(self) -> QSize:  # noqa: D102
        margins = self.viewportMargins()
        size = self.document().size()
        height = math.ceil(size.height()) + margins.top() + margins.bottom()
        if size.width() > self.width() - margins.left() - margins.right():
            height += self.horizontalScrollBar().sizeHint().height()
        return QSize(200, height)

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(60, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.updateGeometry()

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: D102
        return None

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: D102
        delta = event.angleDelta()
        sideways = abs(delta.x()) > abs(delta.y()) or event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        if sideways and self.horizontalScrollBar().maximum() > 0:
            self.horizontalScrollBar().event(event)
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        bar = self.horizontalScrollBar()
        if event.modifiers() & SELECTION_KEYS or event.key() not in SCROLL_KEYS:
            super().keyPressEvent(event)
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and bar.maximum() > 0:
            step = self.fontMetrics().averageCharWidth() * 4
            bar.setValue(bar.value() + (step if event.key() == Qt.Key.Key_Right else -step))
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        before = self.horizontalScrollBar().value()
        super().mouseMoveEvent(event)
        self._undo_jump(before)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.drag_moved.emit(event.globalPosition().toPoint())

    def timerEvent(self, event: QTimerEvent) -> None:  # noqa: D102
        before = self.horizontalScrollBar().value()
        super().timerEvent(event)
        self._undo_jump(before)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        before = self.horizontalScrollBar().value()
        super().mouseReleaseEvent(event)
        self._undo_jump(before)

    def _undo_jump(self, before: int) -> None:
        """Scroll back: a selection drawn below a long last line goes to its end, and Qt with it."""
        x = self.viewport().mapFromGlobal(QCursor.pos()).x()
        if 0 <= x < self.viewport().width():
            self.horizontalScrollBar().setValue(before)
