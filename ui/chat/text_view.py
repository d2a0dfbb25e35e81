"""Read-only text that is as high as what it says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextBlock,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from ui.markdown.document import QuietDocument
from ui.markdown.style import MarkdownStyle
from ui.markdown.writer import QUOTE_LEVEL
from ui.theme import Theme

SELECTION_KEYS = Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier
_BAR = 3
SCROLL_KEYS = {
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_Space,
}


class TextView(QTextBrowser):
    """A document without scroll bars of its own: the conversation scrolls, not the message.

    Attributes:
        has_keyboard_focus: whether the focus came here with Tab and is here still.

    Signals:
        link_activated: an address was clicked, or chosen with the keyboard.
        drag_moved: the mouse moves with a selection in hand, at this global position.
        focus_changed: `has_keyboard_focus` may have changed.
    """

    link_activated = Signal(str)
    drag_moved = Signal(QPoint)
    focus_changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None, *, tints_focus: bool = True) -> None:
        super().__init__(parent)
        self._heights: dict[int, int] = {}
        self.setDocument(QuietDocument(self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setAcceptDrops(False)
        self.setCursorWidth(0)
        self.viewport().setAutoFillBackground(False)
        self.setAccessibleName(name)
        self.anchorClicked.connect(self._activate_link)
        self.document().contentsChanged.connect(self._on_contents_changed)
        self.has_keyboard_focus = False
        self._tints_focus = tints_focus

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        if width not in self._heights:
            self._heights[width] = self._measure(width)
        return self._heights[width]

    def ideal_width(self, available: int) -> int:
        """Return the width that the text needs when it may take `available` pixels."""
        self.document().setTextWidth(available)
        width = math.ceil(self.document().idealWidth()) + 1
        self.document().setTextWidth(self.viewport().width())
        return width

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(0, 0)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: D102
        return None

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts from `style`."""
        self.setFont(style.font)
        document = self.document()
        assert isinstance(document, QuietDocument)
        document.apply_style(style)
        self._heights.clear()

    def _activate_link(self, url: QUrl) -> None:
        self.link_activated.emit(url.toString())

    def _on_contents_changed(self) -> None:
        self._heights.clear()
        self.updateGeometry()

    def _measure(self, width: int) -> int:
        document = self.document()
        laid_out = document.textWidth()
        if laid_out != width:
            document.setTextWidth(width)
        height = math.ceil(document.size().height())
        if laid_out != width and self.viewport().width() == laid_out:
            document.setTextWidth(laid_out)
        return height

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: D102
        event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if event.key() in SCROLL_KEYS and not event.modifiers() & SELECTION_KEYS:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.drag_moved.emit(event.globalPosition().toPoint())

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        self.has_keyboard_focus = event.reason() in (
            Qt.FocusReason.TabFocusReason,
            Qt.FocusReason.BacktabFocusReason,
        )
        super().focusInEvent(event)
        self.viewport().update()
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        self.has_keyboard_focus = False
        super().focusOutEvent(event)
        self.viewport().update()
        self.focus_changed.emit()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        if self.has_keyboard_focus and self._tints_focus:
            self._paint_ground()
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        self._paint_quote_bars(painter, QRectF(event.rect()))

    def _paint_ground(self) -> None:
        painter = QPainter(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(Theme.current().palette.color("accent_soft"))
        painter.drawRoundedRect(QRectF(self.viewport().rect()), 4, 4)

    def _paint_quote_bars(self, painter: QPainter, exposed: QRectF) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(Theme.current().palette.color("border_strong"))
        layout = self.document().documentLayout()
        for block in self._quoted_blocks():
            box = layout.blockBoundingRect(block)
            if not box.intersects(exposed):
                continue
            following = block.next()
            joined_levels = _quote_level(following) if following.isValid() else 0
            level = _quote_level(block)
            unit = block.blockFormat().leftMargin() / level
            for step in range(level):
                bottom = layout.blockBoundingRect(following).top() if step < joined_levels else box.bottom()
                left = unit * step
                if block.textDirection() == Qt.LayoutDirection.RightToLeft:
                    left = self.viewport().width() - left - _BAR
                painter.drawRect(QRectF(left, box.top(), _BAR, bottom - box.top()))

    def _quoted_blocks(self) -> Iterator[QTextBlock]:
        block = self.document().begin()
        while block.isValid():
            if _quote_level(block):
                yield block
            block = block.next()


@contextmanager
def kept_selection(text: QTextEdit) -> Iterator[None]:
    """Keep cursor and selection where they are while text is written, also at the cursor itself."""
    before = text.textCursor()
    places = before.anchor(), before.position()
    yield
    after = text.textCursor()
    if (after.anchor(), after.position()) != places:
        end = text.document().characterCount() - 1
        after.setPosition(min(places[0], end))
        after.setPosition(min(places[1], end), QTextCursor.MoveMode.KeepAnchor)
        text.setTextCursor(after)


def _quote_level(block: QTextBlock) -> int:
    return int(block.blockFormat().property(QUOTE_LEVEL) or 0)
