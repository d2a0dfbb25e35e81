"""The documents above the composer's text."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.document_card import DocumentCard

_MAX_HEIGHT = 250
_LEAST_HEIGHT = 110
_SHARE = 0.34
"""At most so much of the height around it goes to documents."""


class DocumentShelf(QScrollArea):
    """Cards below each other, as high as they need up to about a third of the window; hidden while empty.

    One of several is open, the others are lines.

    Signals:
        removed: take a document away, or stop reading it; the chip's key.
        encoding_chosen: read a document in another encoding; the chip's key and the encoding.
        way_chosen: read a document in another way; its attachment's id and the `DocumentWay`.
        text_wanted: show the extracted text of a document; its attachment's id.
        as_text_wanted: put what was pasted into the message instead; the chip's key.
    """

    removed = Signal(int)
    encoding_chosen = Signal(int, str)
    way_chosen = Signal(int, object)
    text_wanted = Signal(int)
    as_text_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._widgets: dict[int, DocumentCard] = {}
        self._states: dict[int, ChipState] = {}
        self._shows_newest = False
        self._open_key: int | None = None
        self._max_height = _MAX_HEIGHT
        contents = QWidget()
        contents.setObjectName("scrollContents")
        self._column = QVBoxLayout(contents)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
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
        new = [chip.key for chip in chips if chip.key not in self._widgets]
        if len(new) == 1:
            self._open_key = new[0]
        for chip in chips:
            if chip.key in self._widgets:
                self._widgets[chip.key].show_chip(chip)
            else:
                self._widgets[chip.key] = self._make(chip)
                self._shows_newest = True
        self._show_open()
        self.setVisible(bool(chips))
        self._column.invalidate()
        self.updateGeometry()

    def fit_into(self, height: int) -> None:
        """Take at most a share of so many pixels."""
        self._max_height = min(_MAX_HEIGHT, max(_LEAST_HEIGHT, round(height * _SHARE)))
        self.updateGeometry()

    def _show_open(self) -> None:
        """Open the card that is alone or was chosen last, and close the others."""
        can_close = len(self._widgets) > 1
        for key, card in self._widgets.items():
            card.set_open(not can_close or key == self._open_key, can_close=can_close)

    def _toggle(self, key: int) -> None:
        self._open_key = None if key == self._open_key else key
        self._show_open()
        self._column.activate()
        self.updateGeometry()
        self.ensureWidgetVisible(self._widgets[key], 0, 0)

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
        wanted = self._column.heightForWidth(width) if self._column.hasHeightForWidth() else 0
        return min(self._max_height, max(wanted, self._column.sizeHint().height()))

    def sizeHint(self) -> QSize:  # noqa: D102
        return QSize(200, self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:  # noqa: D102
        return QSize(80, 0)

    def _on_range_changed(self, _low: int, high: int) -> None:
        if self._shows_newest:
            self.verticalScrollBar().setValue(high)

    def _make(self, chip: AttachmentChip) -> DocumentCard:
        widget = DocumentCard(chip)
        widget.removed.connect(self.removed)
        widget.encoding_chosen.connect(self.encoding_chosen)
        widget.way_chosen.connect(self.way_chosen)
        widget.text_wanted.connect(self.text_wanted)
        widget.as_text_wanted.connect(self.as_text_wanted)
        widget.open_wanted.connect(self._toggle)
        self._column.addWidget(widget)
        widget.show()
        return widget

    def _drop(self, widget: DocumentCard) -> None:
        self._column.removeWidget(widget)
        widget.hide()
        widget.deleteLater()
