"""The page map: a cell for each page, in groups with headings."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QContextMenuEvent,
    QFocusEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QScrollArea, QSizePolicy, QWidget

from ui.inspector.pages.cells import CellPainter
from ui.inspector.pages.grid import PageGrid
from ui.inspector.pages.groups import PageGroup
from ui.inspector.pages.heading import paint_heading
from ui.inspector.pages.looks import CellLook
from ui.theme import Theme

_RING = 2
"""Pixels of the ring around the cell with the focus, which lies in the gaps."""
_HEADING_PADDING = 8
_SCROLL_MARGIN = 24
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_ROW_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_PAGE_STEPS = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_CHOOSING = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class PageMapView(QWidget):
    """Paints cells from pictures, only those that are to be seen, and finds them by arithmetic.

    Attributes:
        current: the cell that the keyboard is on, None without cells.

    Signals:
        shown_changed: another cell is pointed at or has the focus, or none.
        chosen(int): Enter or Space on a cell.
        menu_asked(int, QPoint): a context menu for a cell, at a place on the screen.
    """

    shown_changed = Signal()
    chosen = Signal(int)
    menu_asked = Signal(int, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.current: int | None = None
        self._hovered: int | None = None
        self._is_dismissed = False
        self._area: QScrollArea | None = None
        self._groups: tuple[PageGroup, ...] = ()
        self._looks: Sequence[CellLook] = ()
        self._open_fill = 0.0
        self._grid = PageGrid((), 1, 0)
        self._painter: CellPainter | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Pages")
        Theme.current().changed.connect(self.update)

    @property
    def shown(self) -> int | None:
        """The cell that is pointed at, else the one with the focus; none after Escape or scrolling."""
        if self._is_dismissed:
            return None
        if self._hovered is not None:
            return self._hovered
        return self.current if self.hasFocus() else None

    @property
    def num_cells(self) -> int:
        """Cells of the pages and the open page."""
        return self._grid.num_cells

    def set_cells(self, groups: tuple[PageGroup, ...], looks: Sequence[CellLook], open_fill: float) -> None:
        """Show pages, and behind them the open page if `open_fill`, its filled share, is not 0.

        While the groups stay, only the rows between cells that look other than before are painted again.
        """
        former, self._looks = self._looks, looks
        was_fill, self._open_fill = self._open_fill, open_fill
        if groups == self._groups and len(former) == len(looks):
            changed = [at for at, pair in enumerate(zip(former, looks, strict=True)) if pair[0] != pair[1]]
            if was_fill != open_fill:
                changed.append(len(looks))
            if changed:
                self.update(self._span(changed[0], changed[-1]))
            return
        self._groups = groups
        self._lay_out(self.width())
        self._clamp()
        self.updateGeometry()
        self.update()

    def _span(self, first: int, last: int) -> QRect:
        """Return the least area with all cells from one to another."""
        above, below = self._grid.rect(first), self._grid.rect(last)
        if above.top() == below.top():
            return above.united(below)
        return QRect(0, above.top(), self.width(), below.bottom() + 1 - above.top())

    def cell_rect(self, index: int) -> QRect:
        """Return where a cell lies in this widget."""
        return self._grid.rect(index)

    def picture(self, index: int) -> QPixmap:
        """Return the picture of a cell."""
        painter = self._cells()
        if index < len(self._looks):
            return painter.picture(self._looks[index])
        return painter.open_picture(self._open_fill)

    def announce(self, sentence: str) -> None:
        """Have the cell with the focus read aloud."""
        self.setAccessibleDescription(sentence)
        if self.hasFocus():
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, sentence))

    def follow_scrolling(self) -> None:
        """Find the area that the map scrolls in, now that it is in its place."""
        widget = self.parentWidget()
        while widget is not None and not isinstance(widget, QScrollArea):
            widget = widget.parentWidget()
        if widget is not self._area and widget is not None:
            widget.verticalScrollBar().valueChanged.connect(self._dismiss)
        self._area = widget

    # Layout.

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        return self._grid_at(width).height + 2 * _RING

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(240, self.heightForWidth(max(self.width(), 1)))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(120, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        self._lay_out(event.size().width())

    def _lay_out(self, width: int) -> None:
        self._grid = self._grid_at(width)

    def _grid_at(self, width: int) -> PageGrid:
        is_plain = all(group.span is None for group in self._groups)
        heading = 0 if is_plain else self.fontMetrics().height() + _HEADING_PADDING
        return PageGrid(tuple(group.count for group in self._groups), width, heading)

    def _cells(self) -> CellPainter:
        key = self._grid.cell, self.devicePixelRatioF(), Theme.current().palette.panel
        if self._painter is None or self._painter.key != key:
            self._painter = CellPainter(key[0], key[1], Theme.current().palette)
        return self._painter

    # Painting.

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        if not self._groups:
            return
        painter = QPainter(self)
        for group in self._grid.groups_between(event.rect().top(), event.rect().bottom()):
            paint_heading(painter, self._grid.heading(group), self._groups[group])
        cells, looks = self._cells(), self._looks
        for index, x, y in self._grid.between(event.rect().top(), event.rect().bottom()):
            is_page = index < len(looks)
            picture = cells.picture(looks[index]) if is_page else cells.open_picture(self._open_fill)
            painter.drawPixmap(x, y, picture)
        self._paint_rings(painter)

    def _paint_rings(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        palette = Theme.current().palette
        rings = [(self._hovered, "text_faint", 1.0)]
        if self.hasFocus():
            rings.append((self.current, "accent", float(_RING)))
        for index, role, line in rings:
            if index is not None:
                painter.setPen(QPen(palette.color(role), line))
                rect = self._grid.rect(index).toRectF().adjusted(-line / 2, -line / 2, line / 2, line / 2)
                painter.drawRoundedRect(rect, 3, 3)

    def _update_cell(self, index: int | None) -> None:
        if index is not None and index < self.num_cells:
            self.update(self._grid.rect(index).adjusted(-_RING, -_RING, _RING, _RING))

    # Mouse and keyboard.

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        point = event.position().toPoint()
        self._hover(self._grid.index_at(point.x(), point.y()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: D102
        self._hover(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        point = event.position().toPoint()
        index = self._grid.index_at(point.x(), point.y())
        if index is not None:
            self._go(index)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: D102
        by_mouse = event.reason() is QContextMenuEvent.Reason.Mouse
        index = self._grid.index_at(event.x(), event.y()) if by_mouse else self.current
        if index is not None:
            where = event.globalPos() if by_mouse else self.mapToGlobal(self._grid.rect(index).center())
            self.menu_asked.emit(index, where)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        key = Qt.Key(event.key())
        if self.current is None:
            super().keyPressEvent(event)
        elif key in _CHOOSING:
            self.chosen.emit(self.current)
        elif key is Qt.Key.Key_Escape and self.shown is not None:
            self._dismiss()
        elif (target := self._target(key, self.current)) is not None:
            self._hover(None)
            self._go(target)
        else:
            super().keyPressEvent(event)

    def _target(self, key: Qt.Key, index: int) -> int | None:
        """Return the cell that a key leads to, None for other keys."""
        last = self.num_cells - 1
        if key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            return 0 if key is Qt.Key.Key_Home else last
        if key in _STEPS:
            return min(max(0, index + _STEPS[key]), last)
        if key in _ROW_STEPS:
            return self._grid.row_step(index, _ROW_STEPS[key])
        if key in _PAGE_STEPS:
            for _ in range(max(1, self.visibleRegion().boundingRect().height() // self._grid.pitch - 1)):
                index = self._grid.row_step(index, _PAGE_STEPS[key])
            return index
        return None

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        self._update_cell(self.current)
        if self.current is not None and event.reason() is not Qt.FocusReason.MouseFocusReason:
            self._scroll_to(self.current)
        self._tell()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: D102
        self._update_cell(self.current)
        self._tell()

    def _hover(self, index: int | None) -> None:
        if index != self._hovered:
            self._update_cell(self._hovered)
            self._hovered = index
            self._update_cell(index)
            self._tell()

    def _go(self, index: int) -> None:
        self._update_cell(self.current)
        self.current = index
        self._update_cell(index)
        self._scroll_to(index)
        self._tell()

    def _tell(self) -> None:
        self._is_dismissed = False
        self.shown_changed.emit()

    def _dismiss(self) -> None:
        """Show nothing of a cell until another is pointed at or has the focus."""
        self._hover(None)
        self._is_dismissed = True
        self.shown_changed.emit()

    def _clamp(self) -> None:
        """Keep the focus on a cell that there is."""
        last = self.num_cells - 1
        self._hovered = None if self._hovered is None or self._hovered > last else self._hovered
        self.current = None if last < 0 else min(self.current or 0, last)

    def _scroll_to(self, index: int) -> None:
        contents = self._area.widget() if self._area is not None else None
        if self._area is not None and contents is not None:
            place = self.mapTo(contents, self._grid.rect(index).center())
            self._area.ensureVisible(place.x(), place.y(), 0, self._grid.pitch + _SCROLL_MARGIN)
