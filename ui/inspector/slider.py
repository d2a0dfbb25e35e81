"""Sliders and numbers in a pane that scrolls."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QSlider, QStyle, QStyleOptionSlider, QWidget


class Slider(QSlider):
    """A horizontal slider whose handle comes to where the mouse is pressed, and follows it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._grip = 0

    def centre_of(self, value: int) -> int:
        """Return where the middle of the handle is at `value`, in pixels from the left."""
        handle = self._handle()
        room = self.width() - handle.width()
        left = QStyle.sliderPositionFromValue(self.minimum(), self.maximum(), value, room, self._is_mirrored)
        return left + handle.width() // 2

    def value_at(self, centre: int) -> int:
        """Return the value that brings the middle of the handle closest to `centre`."""
        handle = self._handle()
        left, room = centre - handle.width() // 2, self.width() - handle.width()
        return QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), left, room, self._is_mirrored)

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if event.button() != Qt.MouseButton.LeftButton:
            event.ignore()
            return
        handle, point = self._handle(), event.position().toPoint()
        self.setSliderDown(True)
        if handle.contains(point):
            self._grip = point.x() - self.centre_of(self.value())
        else:
            self._grip = 0
            self.setValue(self.value_at(point.x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if self.isSliderDown():
            self.setValue(self.value_at(event.position().toPoint().x() - self._grip))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: D102
        if event.button() == Qt.MouseButton.LeftButton:  # another one does not end the drag
            self.setSliderDown(False)
        event.accept()

    @property
    def _is_mirrored(self) -> bool:
        return self.layoutDirection() == Qt.LayoutDirection.RightToLeft

    def _handle(self) -> QRect:
        option = QStyleOptionSlider()
        self.initStyleOption(option)
        control, part = QStyle.ComplexControl.CC_Slider, QStyle.SubControl.SC_SliderHandle
        return self.style().subControlRect(control, option, part, self)


class WheelGuard(QObject):
    """Lets the mouse wheel scroll the pane instead of changing the value under the pointer."""

    def guard(self, *fields: QWidget) -> None:
        """Keep the wheel from these fields, and from giving one the focus and with it what is typed next."""
        for field in fields:
            field.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if event.type() == QEvent.Type.Wheel:
            event.ignore()
            return True
        return super().eventFilter(watched, event)
