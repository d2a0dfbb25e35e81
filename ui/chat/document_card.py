"""A document that is about to be sent: on one line, or open with the ways to read it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.documents.encodings import ENCODINGS, encoding_label
from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.buttons import IconButton
from ui.chat.document_ways import WayChoice
from ui.chat.elided_label import ElidedLabel
from ui.plain_text import plain_label, plain_tip
from ui.theme import Theme

_ICON_SIZE = 20


class DocumentCard(QFrame):
    """A document that is about to be sent: being extracted, ready, or refused.

    A card that is *open* shows the ways to read the document, what each costs, and how far it is read; one
    that is closed is a line. What is wrong with a document is always shown.

    Signals:
        removed: take it away, or stop extracting it; the chip's key.
        encoding_chosen: read it again in another encoding; the chip's key and the encoding.
        way_chosen: read it in another way; its attachment's id and the `DocumentWay`.
        text_wanted: show its extracted text; its attachment's id.
        as_text_wanted: put what was pasted into the message instead; the chip's key.
        open_wanted: open the card, or close it; the chip's key.
    """

    removed = Signal(int)
    encoding_chosen = Signal(int, str)
    way_chosen = Signal(int, object)
    text_wanted = Signal(int)
    as_text_wanted = Signal(int)
    open_wanted = Signal(int)

    def __init__(self, chip: AttachmentChip, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chip = chip
        self._is_open = False
        self.setProperty("kind", "row")
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._icon = QLabel()
        self._title = ElidedLabel()
        self._detail = ElidedLabel()
        self._detail.setProperty("kind", "faint")
        self._line = ElidedLabel()
        self._line.setProperty("kind", "faint")
        self._error = plain_label(wraps=True)
        self._error.setProperty("kind", "danger")
        self._bar = QProgressBar(textVisible=False)
        self._ways = WayChoice(self)
        self._status = ElidedLabel()
        self._status.setProperty("kind", "muted")
        self._view = _link("View text", self)
        self._as_text = _link("Put into the message", self)
        self._encoding = QToolButton(self)
        self._encoding.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._encoding.setToolTip("Choose another text encoding")
        self._opener = IconButton("chevron-down", "Show how it is read", self)
        self._remove = IconButton("close", "Remove", self)
        self._connect()
        self._lay_out()
        self.show_chip(chip)

    def _connect(self) -> None:
        self._ways.chosen.connect(lambda way: self.way_chosen.emit(self._chip.attachment_id, way))
        self._view.clicked.connect(lambda: self.text_wanted.emit(self._chip.attachment_id))
        self._as_text.clicked.connect(lambda: self.as_text_wanted.emit(self._chip.key))
        self._encoding.clicked.connect(self._choose_encoding)
        self._opener.clicked.connect(lambda: self.open_wanted.emit(self._chip.key))
        self._remove.clicked.connect(lambda: self.removed.emit(self._chip.key))

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon)
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self._title)
        words.addWidget(self._detail)
        head.addLayout(words, 3)
        head.addWidget(self._line, 2)
        for button in (self._encoding, self._opener, self._remove):
            head.addWidget(button)
        foot = QHBoxLayout()
        foot.setSpacing(6)
        foot.addWidget(self._status, 1)
        foot.addWidget(self._as_text)
        foot.addWidget(self._view)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(11, 4, 6, 4)
        self._column.setSpacing(5)
        self._column.addLayout(head)
        for widget in (self._error, self._ways, self._bar):
            self._column.addWidget(widget)
        self._column.addLayout(foot)

    @property
    def focus_stops(self) -> tuple[QWidget, ...]:
        """What Tab comes to, in order."""
        stops = (self._encoding, self._opener, self._remove, *self._ways.focus_stops, self._as_text)
        return (*stops, self._view)

    @property
    def chip(self) -> AttachmentChip:
        """What is shown."""
        return self._chip

    def set_open(self, is_open: bool, *, can_close: bool) -> None:
        """Show all of it or one line; a card that is alone stays open."""
        self._is_open = is_open
        self._opener.setVisible(can_close and self._chip.state is ChipState.READY)
        self._show()

    def show_chip(self, chip: AttachmentChip) -> None:
        """Show what is known of the document now."""
        self._chip = chip
        self._show()
        self.restyle()

    def _show(self) -> None:
        chip = self._chip
        is_reading, is_failed = chip.state is ChipState.READING, chip.state is ChipState.FAILED
        is_open = self._is_open and chip.state is ChipState.READY
        self.setToolTip(plain_tip(chip.tip))
        self._title.setText(chip.title)
        self._detail.setText(chip.detail)
        self._detail.setVisible(bool(chip.detail) and (is_open or is_reading))
        self._line.setText(chip.status or chip.detail)
        self._line.setVisible(not (is_open or is_reading or is_failed))
        self._error.setText(chip.error or "This document could not be read.")
        self._error.setVisible(is_failed)
        self._show_progress(is_open, is_reading)
        self._ways.setVisible(is_open and chip.way is not None)
        self._ways.show_cost(chip.title, chip.cost, chip.way)
        self._encoding.setVisible(chip.encoding is not None and not is_reading)
        self._encoding.setText(f"{chip.encoding} ▾")
        self._encoding.setAccessibleName(f"Text encoding of {chip.title}: {chip.encoding}")
        self._show_buttons(is_open, is_reading)
        said = chip.error if is_failed else ", ".join(filter(None, (chip.detail, chip.status)))
        self.setAccessibleName(f"Document: {chip.title}, {said}")

    def _show_progress(self, is_open: bool, is_reading: bool) -> None:
        """Show how far its text is extracted, or read by the model, and why it is read as it is."""
        chip = self._chip
        ahead = chip.ahead.progress if chip.ahead is not None and is_open else None
        done, total = chip.progress or ahead or (0, 0)
        self._bar.setVisible(is_reading or ahead is not None)
        self._bar.setRange(0, total)
        self._bar.setValue(done)
        self._bar.setAccessibleName(f"Reading {chip.title}")
        reason = "" if chip.cost is None or chip.way is not chip.cost.sensible else chip.cost.reason
        self._status.setText(reason if chip.ahead is None else chip.ahead.text)
        self._status.setVisible(is_open)

    def _show_buttons(self, is_open: bool, is_reading: bool) -> None:
        chip = self._chip
        self._view.setVisible(is_open and chip.attachment_id is not None)
        self._view.setAccessibleName(f"View the text of {chip.title}")
        self._as_text.setVisible(is_open and chip.is_pasted)
        self._as_text.setAccessibleName(f"Put {chip.title} into the message")
        self._remove.set_name(f"Stop reading {chip.title}" if is_reading else f"Remove {chip.title}")
        verb = "Hide" if is_open else "Show"
        self._opener.set_name(f"{verb} how {chip.title} is read")
        self._opener.set_icon("chevron-up" if is_open else "chevron-down")

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        is_failed = self._chip.state is ChipState.FAILED
        name, role = ("error", "danger") if is_failed else ("file-text", "text_muted")
        self._icon.setPixmap(Theme.current().pixmap(name, _ICON_SIZE, role))
        for button in (self._opener, self._remove):
            button.restyle()
        self._ways.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Open a card that is closed; the frame around must not take the click for one on the text."""
        if not self._is_open and self._opener.isVisible():
            self.open_wanted.emit(self._chip.key)
        event.accept()

    def encoding_menu(self) -> QMenu:
        """Return the menu of encodings, the one in use checked."""
        menu = QMenu(self)
        for encoding in ENCODINGS:
            action = QAction(encoding_label(encoding), menu)
            action.setData(encoding)
            action.setCheckable(True)
            action.setChecked(encoding == self._chip.encoding)
            menu.addAction(action)
        menu.triggered.connect(self._take_encoding)
        menu.aboutToHide.connect(menu.deleteLater)
        return menu

    def _choose_encoding(self) -> None:
        self.encoding_menu().popup(self._encoding.mapToGlobal(self._encoding.rect().bottomLeft()))

    def _take_encoding(self, action: QAction) -> None:
        self.encoding_chosen.emit(self._chip.key, str(action.data()))


def _link(words: str, parent: QWidget) -> QPushButton:
    button = QPushButton(words, parent)
    button.setProperty("kind", "link")
    button.setCursor(Qt.CursorShape.PointingHandCursor)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
