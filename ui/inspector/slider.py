"""Sliders and numbers in a pane that scrolls."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QSlider, QStyle, QStyleOptionSlider, QWidget


class Slider(QSlider):
    """A horizontal slider whose handle comes to where the mouse is pressed, and follows it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        handle, point = self._handle(), event.position().toPoint()
        if event.button() == Qt.MouseButton.LeftButton and not handle.contains(point):
            left, room = point.x() - handle.width() // 2, self.width() - handle.width()
            is_mirrored = self.layoutDirection() == Qt.LayoutDirection.RightToLeft
            self.setValue(
                QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), left, room, is_mirrored)
            )
        super().mousePressEvent(event)

    def _handle(self) -> QRect:
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        control, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
        return self.style().subControlRect(control, option, part, self)


class WheelGuard(QObject):
    """Lets the mouse wheel scroll the pane instead of changing the value under the pointer."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        return super().eventFilter(watched, event)
