"""The documents above the composer's text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.document_chip import DraftDocument
from ui.chat.flow_layout import FlowLayout

_MAX_HEIGHT = 172


class DocumentShelf(QScrollArea):
    """Chips in rows, as high as they need up to about three rows, then scrolling; hidden while empty.

    Signals:
        removed: take a document away, or stop reading it; the chip's key.
        encoding_chosen: read a document in another encoding; the chip's key and the encoding.
    """

    removed = Signal(int)
    encoding_chosen = Signal(int, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._widgets: dict[int, DraftDocument] = {}
        self._states: dict[int, ChipState] = {}
        self._shows_newest = False
        contents = QWidget()
        contents.setObjectName("scrollContents")
        self._flow = FlowLayout(contents, spacing=8)
        self.setWidget(contents)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        self.viewport().setAutoFillBackground(False)
        contents.setAutoFillBackground(False)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()

    @property
    def has_ready(self) -> bool:
        """Whether a document is ready to be sent."""
        return ChipState.READY in self._states.values()

    @property
    def is_reading(self) -> bool:
        """Whether a document is still being read."""
        return ChipState.READING in self._states.values()

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab comes to, in order."""
        return [stop for widget in self._widgets.values() for stop in widget.focus_stops]

    def show_chips(self, chips: Sequence[AttachmentChip]) -> None:
        """Show these documents, in this order; chips that stay keep their widget and its focus."""
        self._states = {chip.key: chip.state for chip in chips}
        for key in [key for key in self._widgets if key not in self._states]:
            self._drop(self._widgets.pop(key))
        if list(self._widgets) != list(self._states)[: len(self._widgets)]:
            for widget in self._widgets.values():
                self._drop(widget)
            self._widgets = {}
        for chip in chips:
            if chip.key in self._widgets:
                self._widgets[chip.key].show_chip(chip)
            else:
                self._widgets[chip.key] = self._make(chip)
                self._shows_newest = True
        self.setVisible(bool(chips))
        self._flow.invalidate()
        self.updateGeometry()

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        for widget in self._widgets.values():
            widget.restyle()

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: D102
        self._shows_newest = False
        super().wheelEvent(event)

    def hasHeightForWidth(self) -> bool:  # noqa: D102
        return True

    def heightForWidth(self, width: int) -> int:  # noqa: D102
        return min(_MAX_HEIGHT, self._flow.heightForWidth(width))

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(80, 0)

    def _on_range_changed(self, _low: int, high: int) -> None:
        if self._shows_newest:
            self.verticalScrollBar().setValue(high)

    def _make(self, chip: AttachmentChip) -> DraftDocument:
        widget = DraftDocument(chip)
        widget.removed.connect(self.removed)
        widget.encoding_chosen.connect(self.encoding_chosen)
        self._flow.addWidget(widget)
        widget.show()
        return widget

    def _drop(self, widget: DraftDocument) -> None:
        self._flow.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
