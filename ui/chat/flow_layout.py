"""A layout that fills rows and wraps."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Places items side by side and begins a new row where the width ends.

    With `align_end` the rows end at the trailing edge instead of starting at the leading one.
    """

    def __init__(self, parent: QWidget, *, spacing: int, align_end: bool = False) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._align_end = align_end
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:  # noqa: D102
        self._items.append(item)

    def count(self) -> int:  # noqa: D102
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:  # noqa: D102
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:  # noqa: D102
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:  # noqa: D102
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        rows = self._rows(width)
        heights = [max(size.height() for _, size in row) for row in rows]
        return sum(heights) + self.spacing() * max(0, len(rows) - 1)

    def sizeHint(self) -> QSize:  # noqa: D102
        return self.minimumSize()

    def minimumSize(self) -> QSize:  # noqa: D102
        size = QSize(0, 0)
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def setGeometry(self, rect: QRect) -> None:  # noqa: D102
        super().setGeometry(rect)
        parent = self.parentWidget()
        is_mirrored = parent is not None and parent.layoutDirection() == Qt.LayoutDirection.RightToLeft
        y = rect.top()
        for row in self._rows(rect.width()):
            used = sum(size.width() for _, size in row) + self.spacing() * (len(row) - 1)
            x = rect.width() - used if self._align_end else 0
            for item, size in row:
                left = rect.width() - x - size.width() if is_mirrored else x
                item.setGeometry(QRect(QPoint(rect.left() + left, y), size))
                x += size.width() + self.spacing()
            y += max(size.height() for _, size in row) + self.spacing()

    def _rows(self, width: int) -> list[list[tuple[QLayoutItem, QSize]]]:
        rows: list[list[tuple[QLayoutItem, QSize]]] = []
        x = 0
        for item in self._items:
            size = item.sizeHint().boundedTo(QSize(max(width, 1), 100_000))
            if not rows or x + size.width() > width:
                rows.append([])
                x = 0
            rows[-1].append((item, size))
            x += size.width() + self.spacing()
        return rows
