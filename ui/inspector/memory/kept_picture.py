"""A widget that is drawn once and then only copied to the screen."""

from __future__ import annotations

from PySide6.QtGui import QPainter, QPaintEvent, QPixmap
from PySide6.QtWidgets import QWidget

from ui.theme import Theme


class KeptPicture(QWidget):
    """Keeps what `draw` drew until the size, the colours or what is shown change.

    Words and lines drawn by Python cost fifty times what copying their picture does.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: QPixmap | None = None
        Theme.current().changed.connect(self.redraw)

    def draw(self, painter: QPainter) -> None:
        """Draw all of the widget; `painter` has its font, and its colour of the panel as background."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw anew before the next painting."""
        self._picture = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        QPainter(self).drawPixmap(0, 0, self._current_picture())

    def _current_picture(self) -> QPixmap:
        ratio = self.devicePixelRatioF()
        size = self.size() * ratio
        if self._picture is None or self._picture.size() != size:
            self._picture = QPixmap(size)
            self._picture.setDevicePixelRatio(ratio)
            self._picture.fill(Theme.current().palette.color("panel"))
            painter = QPainter(self._picture)
            painter.setFont(self.font())
            self.draw(painter)
            painter.end()
        return self._picture
