"""What an open card shows of a document: the ways to read it, and how far it is read."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QVBoxLayout, QWidget

from ui.chat.attachments import AttachmentChip
from ui.chat.document_ways import WayChoice
from ui.chat.elided_label import ElidedLabel


class DocumentBody(QWidget):
    """The ways as buttons, and below them how far the document is read, or why it is read as it is.

    Signals:
        way_chosen: the `DocumentWay` that the user has chosen.
        text_wanted: show the extracted text.
        as_text_wanted: put what was pasted into the message instead.
    """

    way_chosen = Signal(object)
    text_wanted = Signal()
    as_text_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ways = WayChoice(self)
        self._bar = QProgressBar(textVisible=False)
        self._status = ElidedLabel()
        self._status.setProperty("kind", "muted")
        self._as_text = _link("Put into the message", self)
        self._view = _link("View text", self)
        self._ways.chosen.connect(self.way_chosen)
        self._as_text.clicked.connect(self.as_text_wanted)
        self._view.clicked.connect(self.text_wanted)
        foot = QHBoxLayout()
        foot.setSpacing(6)
        foot.addWidget(self._status, 1)
        foot.addWidget(self._as_text)
        foot.addWidget(self._view)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(5)
        column.addWidget(self._ways)
        column.addWidget(self._bar)
        column.addLayout(foot)

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab comes to, in order."""
        return [*self._ways.focus_stops, self._as_text, self._view]

    def show_chip(self, chip: AttachmentChip) -> None:
        """Show what is known of the document now."""
        self._ways.setVisible(chip.way is not None)
        self._ways.show_cost(chip.title, chip.cost, chip.way)
        progress = None if chip.ahead is None else chip.ahead.progress
        done, total = progress or (0, 0)
        self._bar.setVisible(progress is not None)
        self._bar.setRange(0, total)
        self._bar.setValue(done)
        self._bar.setAccessibleName(f"Reading {chip.title}")
        reason = "" if chip.cost is None or chip.way is not chip.cost.sensible else chip.cost.reason
        self._status.setText(reason if chip.ahead is None else chip.ahead.text)
        self._view.setVisible(chip.attachment_id is not None)
        self._view.setAccessibleName(f"View the text of {chip.title}")
        self._as_text.setVisible(chip.is_pasted)
        self._as_text.setAccessibleName(f"Put {chip.title} into the message")

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        self._ways.update()


def _link(words: str, parent: QWidget) -> QPushButton:
    button = QPushButton(words, parent)
    button.setProperty("kind", "link")
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
