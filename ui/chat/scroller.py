"""The scroll area of the conversation: follows the end, or keeps what is read in its place."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QVBoxLayout, QWidget

from ui.chat.buttons import IconButton
from ui.theme import Theme

COLUMN_WIDTH = 760
SIDE_MARGIN = 28
_TOP_MARGIN = 24
_BOTTOM_MARGIN = 28
_SPACING = 14
_NEAR_END = 24
_LINE_STEP = 24
_DRAG_EDGE = 28
_DRAG_STEP = 30
_JUMP_SIZE = 36


@dataclass(frozen=True)
class _Anchor:
    """A widget in sight: how far its top is above the viewport's, and its height then."""

    widget: QWidget
    offset: int
    height: int


class ConversationScroller(QScrollArea):
    """A centred column of at most `COLUMN_WIDTH` pixels.

    While the view is at its end it stays there as the column grows. Anywhere else the first widget in sight
    is the anchor: whatever is put above it, and however the width changes, it stays where it is.
    """

    def __init__(self, header: QWidget, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_following = True
        self._is_moving = False
        self._has_new_width = False
        self._anchor: _Anchor | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(QuietScrollBar(self))
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Conversation")
        contents = QWidget()
        contents.setObjectName("scrollContents")
        self._column = QVBoxLayout(contents)
        self._column.setSpacing(_SPACING)
        self._column.addWidget(header, 0, Qt.AlignmentFlag.AlignHCenter)
        self._column.addStretch()
        self._widgets: list[QWidget] = []
        self.setWidget(contents)
        self.viewport().setAutoFillBackground(False)
        contents.setAutoFillBackground(False)
        self._jump = JumpButton(self)
        self._jump.clicked.connect(self.follow)
        self._jump.hide()
        bar = self.verticalScrollBar()
        bar.setSingleStep(_LINE_STEP)
        bar.rangeChanged.connect(self._on_range_changed)
        bar.valueChanged.connect(self._on_value_changed)

    def append(self, widget: QWidget) -> None:
        """Put `widget` at the end of the column."""
        self._widgets.append(widget)
        self._column.insertWidget(self._column.count() - 1, widget)
        widget.show()

    def prepend(self, widget: QWidget) -> None:
        """Put `widget` at the start of the column, below the header."""
        self._widgets.insert(0, widget)
        self._column.insertWidget(1, widget)
        widget.show()

    def set_divider(self, divider: QWidget, below: QWidget | None, *, at_end: bool = False) -> None:
        """Put `divider` above the widget `below`, or at the end; else take it away."""
        self._column.removeWidget(divider)
        if below is not None:
            self._column.insertWidget(self._column.indexOf(below), divider)
        elif at_end:
            self._column.insertWidget(self._column.count() - 1, divider)
        divider.setVisible(below is not None or at_end)

    def clear(self) -> None:
        """Take all widgets away, to be deleted."""
        self._anchor = None
        for widget in self._widgets:
            widget.hide()
            widget.deleteLater()
        self._widgets = []

    def is_filled(self) -> bool:
        """Whether the column is more than one page higher than what is in sight."""
        page = max(400, self.viewport().height())
        return self._column.totalHeightForWidth(self.viewport().width()) > 2 * page

    def follow(self) -> None:
        """Go to the end and stay there."""
        self._is_following = True
        self._move(self.verticalScrollBar().maximum())
        self._update_jump()

    def stay_at(self, widget: QWidget) -> None:
        """Have the top of a widget of the column in sight, also when what was just put there is laid out."""
        self._is_following = False
        self._anchor = _Anchor(widget, -_TOP_MARGIN, widget.height())
        self._keep_place()

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        self._jump.restyle()

    def follow_drag(self, position: QPoint) -> None:
        """Scroll when the mouse, selecting, comes to an edge; `position` is global."""
        y = self.viewport().mapFromGlobal(position).y()
        bar = self.verticalScrollBar()
        if y < _DRAG_EDGE:
            bar.setValue(bar.value() - _DRAG_STEP)
        elif y > self.viewport().height() - _DRAG_EDGE:
            bar.setValue(bar.value() + _DRAG_STEP)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        side = max(SIDE_MARGIN, (self.width() - COLUMN_WIDTH) // 2)
        bar = self.width() - self.viewport().width()
        self._column.setContentsMargins(side, _TOP_MARGIN, side - bar, _BOTTOM_MARGIN)
        self._has_new_width = event.size().width() != event.oldSize().width()
        super().resizeEvent(event)
        self._has_new_width = False
        self._keep_place()
        corner = QPoint((self.width() - _JUMP_SIZE) // 2, self.height() - _JUMP_SIZE - 14)
        self._jump.move(corner)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        bar = self.verticalScrollBar()
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.follow()
        elif event.key() == Qt.Key.Key_Space:
            bar.setValue(bar.value() + bar.pageStep())
        else:
            super().keyPressEvent(event)

    def _on_range_changed(self, _minimum: int, _maximum: int) -> None:
        self._keep_place()

    def _on_value_changed(self, value: int) -> None:
        if self._is_moving:
            return
        self._is_following = value >= self.verticalScrollBar().maximum() - _NEAR_END
        self._anchor = None if self._is_following else self._find_anchor()
        self._update_jump()

    def _keep_place(self) -> None:
        if self._is_following:
            self._move(self.verticalScrollBar().maximum())
        elif self._anchor is not None:
            anchor = self._anchor
            offset = anchor.offset
            if self._has_new_width and 0 < offset < anchor.height:
                offset = round(offset * anchor.widget.height() / anchor.height)
            self._move(anchor.widget.y() + offset)
            self._anchor = _Anchor(anchor.widget, offset, anchor.widget.height())
        self._update_jump()

    def _find_anchor(self) -> _Anchor | None:
        top = self.verticalScrollBar().value()
        for widget in self._widgets:
            if widget.y() + widget.height() > top:
                return _Anchor(widget, top - widget.y(), widget.height())
        return None

    def _move(self, value: int) -> None:
        self._is_moving = True
        self.verticalScrollBar().setValue(value)
        self._is_moving = False

    def _update_jump(self) -> None:
        bar = self.verticalScrollBar()
        self._jump.setVisible(not self._is_following and bar.value() < bar.maximum() - _NEAR_END)
        self._jump.raise_()


class QuietScrollBar(QScrollBar):
    """A bar seen only when it can move; it always keeps its place, so that no text wraps anew for it."""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        if self.maximum() > self.minimum():
            super().paintEvent(event)


class JumpButton(IconButton):
    """A round button over the conversation that goes back to its end."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("arrow-down", "Jump to the latest message", parent)
        self.resize(_JUMP_SIZE, _JUMP_SIZE)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        palette = Theme.current().palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(palette.color("accent" if self.hasFocus() else "border_strong"), 1))
        painter.setBrush(palette.color("hover" if self.underMouse() else "surface"))
        circle = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawEllipse(circle)
        side = self.iconSize().width()
        left, top = (self.width() - side) // 2, (self.height() - side) // 2
        self.icon().paint(painter, left, top, side, side)
