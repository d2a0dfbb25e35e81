"""A document that is about to be sent: on one line, or open with the ways to read it."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QMouseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.documents.encodings import ENCODINGS, encoding_label
from ui.chat.attachments import AttachmentChip, ChipState
from ui.chat.buttons import IconButton
from ui.chat.document_body import DocumentBody
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
        self._is_open = self._can_close = False
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
        self._body: DocumentBody | None = None  # made when the card is opened: there may be hundreds
        self._encoding = QToolButton(self)
        self._encoding.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._encoding.setToolTip("Choose another text encoding")
        self._opener = IconButton("chevron-down", "Show how it is read", self)
        self._remove = IconButton("close", "Remove", self)
        self._connect()
        self._lay_out()
        self._show()
        self.restyle()

    def _connect(self) -> None:
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
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(11, 4, 6, 4)
        self._column.setSpacing(5)
        self._column.addLayout(head)
        self._column.addWidget(self._error)
        self._column.addWidget(self._bar)

    def _opened_body(self) -> DocumentBody:
        """Return what an open card shows below its first line."""
        if self._body is None:
            body = self._body = DocumentBody(self)
            body.way_chosen.connect(lambda way: self.way_chosen.emit(self._chip.attachment_id, way))
            body.text_wanted.connect(lambda: self.text_wanted.emit(self._chip.attachment_id))
            body.as_text_wanted.connect(lambda: self.as_text_wanted.emit(self._chip.key))
            self._column.addWidget(body)
        return self._body

    @property
    def focus_stops(self) -> tuple[QWidget, ...]:
        """What Tab comes to, in order."""
        own = (self._encoding, self._opener, self._remove)
        return own if self._body is None else (*own, *self._body.focus_stops)

    @property
    def chip(self) -> AttachmentChip:
        """What is shown."""
        return self._chip

    def set_open(self, is_open: bool, *, can_close: bool) -> None:
        """Show all of it or one line; a card that is alone stays open."""
        if (is_open, can_close) != (self._is_open, self._can_close):
            self._is_open, self._can_close = is_open, can_close
            self._show()

    def show_chip(self, chip: AttachmentChip) -> None:
        """Show what is known of the document now."""
        was, self._chip = self._chip, chip
        if chip != was and (self._is_open or _on_one_line(chip) != _on_one_line(was)):
            self._show()
        if chip.state is not was.state:
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
        done, total = chip.progress or (0, 0)
        self._bar.setVisible(is_reading)
        self._bar.setRange(0, total)
        self._bar.setValue(done)
        self._bar.setAccessibleName(f"Reading {chip.title}")
        if is_open:
            self._opened_body().show_chip(chip)
        if self._body is not None:
            self._body.setVisible(is_open)
        self._encoding.setVisible(chip.encoding is not None and (is_open or is_failed))
        self._encoding.setText(f"{chip.encoding} ▾")
        self._encoding.setAccessibleName(f"Text encoding of {chip.title}: {chip.encoding}")
        self._show_buttons(is_open, is_reading)
        said = chip.error if is_failed else ", ".join(filter(None, (chip.detail, chip.status)))
        self.setAccessibleName(f"Document: {chip.title}, {said}")

    def _show_buttons(self, is_open: bool, is_reading: bool) -> None:
        chip = self._chip
        self._remove.set_name(f"Stop reading {chip.title}" if is_reading else f"Remove {chip.title}")
        self._opener.setVisible(self._can_close and chip.state is ChipState.READY)
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
        if self._body is not None:
            self._body.restyle()

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


def _on_one_line(chip: AttachmentChip) -> tuple[AttachmentChip, str]:
    """Return all that a closed card shows: what a document costs changes with each letter that is written."""
    return dataclasses.replace(chip, cost=None, way=None, ahead=None), chip.status
