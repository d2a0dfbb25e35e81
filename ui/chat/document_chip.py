"""Documents as chips: those that were sent, and those above the composer's text."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QProgressBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.documents.encodings import ENCODINGS, encoding_label
from app.ledger.context import SpanState
from app.store.records import Attachment
from ui.chat.attachments import AttachmentChip, ChipState, size_text
from ui.chat.buttons import IconButton
from ui.chat.elided_label import ElidedLabel
from ui.plain_text import plain_label, plain_tip
from ui.theme import Theme

_MAX_TITLE_WIDTH = 330
_ICON_SIZE = 20


class SentDocument(QFrame):
    """A document that went with a message."""

    def __init__(self, attachment: Attachment, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "row")
        self.setToolTip(plain_tip(attachment.source))
        self._attachment = attachment
        title = ElidedLabel(attachment.title, _MAX_TITLE_WIDTH)
        self._detail = ElidedLabel("", _MAX_TITLE_WIDTH)
        self._detail.setProperty("kind", "faint")
        self._icon = QLabel()
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(title)
        words.addWidget(self._detail)
        row = QHBoxLayout(self)
        row.setContentsMargins(11, 7, 13, 7)
        row.setSpacing(9)
        row.addWidget(self._icon)
        row.addLayout(words)
        self.show_state(SpanState.IN_CONTEXT)
        self.restyle()

    def show_state(self, state: SpanState) -> None:
        """Say beside its size where the model does not read the document itself."""
        detail = size_text(self._attachment)
        if state is not SpanState.IN_CONTEXT:
            detail = f"{detail} · {state.value}"
        self._detail.setText(detail)
        self.setAccessibleName(f"Document: {self._attachment.title}, {detail}")

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        self._icon.setPixmap(Theme.current().pixmap("file-text", _ICON_SIZE))


class DraftDocument(QFrame):
    """A document that is about to be sent: being read, ready, or refused.

    Signals:
        removed: take it away, or stop reading it; the chip's key.
        encoding_chosen: read it again in another encoding; the chip's key and the encoding.
    """

    removed = Signal(int)
    encoding_chosen = Signal(int, str)

    def __init__(self, chip: AttachmentChip, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chip = chip
        self.setProperty("kind", "row")
        self._icon = QLabel()
        self._title = ElidedLabel("", _MAX_TITLE_WIDTH)
        self._detail = ElidedLabel("", _MAX_TITLE_WIDTH)
        self._detail.setProperty("kind", "faint")
        self._error = plain_label(wraps=True)
        self._error.setProperty("kind", "danger")
        self._error.setFixedWidth(_MAX_TITLE_WIDTH)
        self._bar = QProgressBar(textVisible=False)
        self._bar.setAccessibleName("Reading")
        self._encoding = QToolButton(self)
        self._encoding.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._encoding.setToolTip("Choose another text encoding")
        self._encoding.clicked.connect(self._choose_encoding)
        self._remove = IconButton("close", "Remove", self)
        self._remove.clicked.connect(self._ask_removal)
        words = QVBoxLayout()
        words.setSpacing(2)
        for widget in (self._title, self._detail, self._error, self._bar):
            words.addWidget(widget)
        row = QHBoxLayout(self)
        row.setContentsMargins(11, 6, 5, 6)
        row.setSpacing(8)
        row.addWidget(self._icon)
        row.addLayout(words)
        row.addWidget(self._encoding)
        row.addWidget(self._remove)
        self.show_chip(chip)

    @property
    def focus_stops(self) -> tuple[QWidget, ...]:
        """What Tab comes to, in order."""
        return self._encoding, self._remove

    def show_chip(self, chip: AttachmentChip) -> None:
        """Show what is known of the document now."""
        self._chip = chip
        self.setToolTip(plain_tip(chip.tip))
        is_reading, is_failed = chip.state is ChipState.READING, chip.state is ChipState.FAILED
        self._title.setText(chip.title)
        self._detail.setText(chip.detail)
        self._detail.setVisible(bool(chip.detail) and not is_failed)
        self._error.setText(chip.error or "This document could not be read.")
        self._error.setVisible(is_failed)
        self._bar.setVisible(is_reading)
        done, total = chip.progress or (0, 0)
        self._bar.setRange(0, total)
        self._bar.setValue(done)
        self._encoding.setVisible(chip.encoding is not None and not is_reading)
        self._remove.set_name(f"Stop reading {chip.title}" if is_reading else f"Remove {chip.title}")
        self._encoding.setText(f"{chip.encoding} ▾")
        self._encoding.setAccessibleName(f"Text encoding of {chip.title}: {chip.encoding}")
        self.setAccessibleName(f"Document: {chip.title}, {chip.error if is_failed else chip.detail}")
        self.restyle()

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        is_failed = self._chip.state is ChipState.FAILED
        name, role = ("error", "danger") if is_failed else ("file-text", "text_muted")
        self._icon.setPixmap(Theme.current().pixmap(name, _ICON_SIZE, role))
        self._remove.restyle()

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

    def _ask_removal(self) -> None:
        self.removed.emit(self._chip.key)
