"""Where messages are written: text, documents, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.admission import RefusalPanel
from ui.chat.asked_documents import AskedDocument, AskedDocuments
from ui.chat.attachments import AttachmentChip
from ui.chat.buttons import IconButton
from ui.chat.composer_frame import ComposerFrame, in_line
from ui.chat.context_meter import ContextMeter, draft_text
from ui.chat.document_shelf import DocumentShelf
from ui.chat.focus_order import chain_after, chain_before
from ui.chat.prompt_edit import PromptEdit
from ui.chat.scroller import COLUMN_WIDTH, SIDE_MARGIN
from ui.chat.send_button import SendButton
from ui.markdown.style import MarkdownStyle
from ui.plain_text import plain_label
from ui.theme import Theme

_MAX_LINES = 8
_LEAST_LINES = 3
_PIXELS_PER_LINE = 110
"""The field grows by a line for so many pixels of the height around it, so that a refusal has room above."""
_MAX_PASTED_CHARS = 8_000
"""A longer text that is pasted becomes a document, some 2,000 tokens: it can be read by each of the ways."""
_OVERHANG = 16
"""The frame is this much wider than the column on each side, so that the texts are in line."""
_BUSY_HINT = "A reply is being written. Wait for it, or press Esc to stop it."
_READING_HINT = "A document is still being read."


class Composer(QWidget):
    """The field at the bottom of the conversation.

    What is submitted stays in the field until the owner takes it away with `set_text("")`, so that a message
    that was refused is not lost.

    Attributes:
        edit: the field.
        refusal: says above the field that a message does not fit, and what would.

    Signals:
        submitted: send this text with the documents that are ready.
        stop_requested: stop the reply.
        files_dropped: local files were pasted: list of paths.
        long_text_pasted: a long text was pasted: take it as a document.
        as_text_wanted: a text that was pasted is to be put into the message instead; the chip's key.
        text_edited: the user changed the text; `set_text` does not count.
        attachment_removed: take a document away, or stop reading it; the chip's key.
        encoding_changed: read a document in another encoding; the chip's key and the encoding.
        attach_requested: choose files.
        way_chosen: read a document in another way: its attachment's id and the `DocumentWay`.
        text_wanted: show the extracted text of a document; its attachment's id.
    """

    submitted = Signal(str)
    stop_requested = Signal()
    files_dropped = Signal(object)
    long_text_pasted = Signal(str)
    as_text_wanted = Signal(int)
    text_edited = Signal(str)
    attachment_removed = Signal(int)
    encoding_changed = Signal(int, str)
    attach_requested = Signal()
    way_chosen = Signal(int, object)
    text_wanted = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_busy = False
        self._text_tokens: int | None = None
        self._attachment_tokens: int | None = None
        self._used_tokens: int | None = None
        self._limit_tokens: int | None = None
        self._is_about = False
        self._own_hint = ""
        self._hint = ""
        self._is_hint_error = False
        self.refusal = RefusalPanel("Send anyway…", self)  # made first, as Tab goes through it first
        self.refusal.gone.connect(self._keep_focus)
        self.edit = PromptEdit("Message", _MAX_LINES, self, max_pasted_chars=_MAX_PASTED_CHARS)
        self.edit.setPlaceholderText("Write a message, or drop a document here")
        self.edit.setFont(MarkdownStyle.current().font)
        self._asked = AskedDocuments(self)
        self._documents = DocumentShelf(self)
        self._attach = IconButton("attach", "Attach documents", self)
        self._send = SendButton(self)
        self._hint_line = plain_label(wraps=True)
        self._words = QLabel()
        self._words.setProperty("kind", "faint")
        self._meter = ContextMeter(self)
        self._note = plain_label(wraps=True)
        self._note.setProperty("kind", "faint")
        self._note.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._note.hide()
        self._connect()
        self._lay_out()
        self.setFocusProxy(self.edit)
        self._update()
        Theme.current().changed.connect(self._restyle)

    @property
    def text(self) -> str:
        """The text in the field."""
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Replace the text, as when another draft is opened or the message was sent."""
        self.edit.set_text(text)
        self._own_hint = ""
        self._update()

    def take_text(self, text: str) -> None:
        """Put a text from elsewhere where the cursor is, or have it taken as a document where it is long."""
        if len(text) > _MAX_PASTED_CHARS:
            self.long_text_pasted.emit(text)
        else:
            self.insert_text(text)

    def insert_text(self, text: str) -> None:
        """Put a text where the cursor is, however long it is."""
        self.edit.insert_text(text)
        self.edit.setFocus()

    def refuse(self, sentence: str) -> None:
        """Say why what was pasted, dropped or sent was not taken, until something is written."""
        self._own_hint = sentence
        self._update()

    def fit_into(self, height: int) -> None:
        """Let the field grow only as far as suits a column of so many pixels."""
        self.edit.set_max_lines(min(_MAX_LINES, max(_LEAST_LINES, height // _PIXELS_PER_LINE)))
        self._documents.fit_into(height)

    def set_busy(self, is_busy: bool) -> None:
        """Say whether a reply is being written: the button then stops it."""
        if is_busy != self._is_busy:
            self._is_busy = is_busy
            self._own_hint = ""
            self._update()

    def set_attachments(self, chips: Sequence[AttachmentChip]) -> None:
        """Show the documents of the draft, in this order."""
        was_reading, focused = self._documents.is_reading, self.window().focusWidget()
        self._documents.show_chips(chips)
        if stops := self._documents.focus_stops:
            chain_after(self.edit, stops)  # brings them here from the end of the window
            chain_before(self.edit, stops)
        if self._documents.isAncestorOf(focused) and not focused.isVisible():
            self.edit.setFocus()  # else Qt moves on from the document that went, and out of the composer
        if was_reading and not self._documents.is_reading:
            self._own_hint = ""
        self._update()

    def set_asked_documents(self, documents: Sequence[AskedDocument]) -> None:
        """Show the documents of the conversation that the next question is read against."""
        self._asked.show_documents(documents)
        if stops := self._asked.focus_stops:
            chain_after(self.edit, stops)
            chain_before(self.edit, [*stops, *self._documents.focus_stops])

    def set_token_count(self, text_tokens: int | None, attachment_tokens: int | None) -> None:
        """Show what the text and the documents cost; None while it is not known."""
        self._text_tokens, self._attachment_tokens = text_tokens, attachment_tokens
        self._update()

    def set_context(
        self, used_tokens: int | None, limit_tokens: int | None, note: str = "", *, is_about: bool = False
    ) -> None:
        """Show how full the context would be: the conversation so far and what is being written together.

        `note` is a sentence about it, such as that old turns are left out; `is_about` calls it an estimate.
        """
        self._used_tokens, self._limit_tokens, self._is_about = used_tokens, limit_tokens, is_about
        self._note.setText(note)
        self._note.setVisible(bool(note) and used_tokens is not None)
        self._update()

    def set_hint(self, text: str, *, is_error: bool = False) -> None:
        """Show one sentence below the field; an empty text takes it away."""
        self._hint, self._is_hint_error = text, is_error
        self._update()

    def _connect(self) -> None:
        self.edit.enter_pressed.connect(self._submit)
        self.edit.escape_pressed.connect(self._on_escape)
        self.edit.edited.connect(self._on_edited)
        self.edit.files_pasted.connect(self.files_dropped)
        self.edit.long_text_pasted.connect(self.long_text_pasted)
        self.edit.paste_refused.connect(self.refuse)
        self.edit.focus_changed.connect(self.update)
        self._documents.removed.connect(self.attachment_removed)
        self._documents.encoding_chosen.connect(self.encoding_changed)
        for documents in (self._documents, self._asked):
            documents.way_chosen.connect(self.way_chosen)
            documents.text_wanted.connect(self.text_wanted)
        self._documents.as_text_wanted.connect(self.as_text_wanted)
        self._attach.clicked.connect(self.attach_requested)
        self._send.clicked.connect(self._on_button)

    def _lay_out(self) -> None:
        self._frame = ComposerFrame(self.edit, self)
        buttons = QHBoxLayout()
        buttons.setSpacing(6)
        buttons.addWidget(self._attach, 0, Qt.AlignmentFlag.AlignBottom)
        buttons.addStretch()
        buttons.addWidget(self._send, 0, Qt.AlignmentFlag.AlignBottom)
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(_OVERHANG - 3, 12, 9, 9)
        inside.setSpacing(8)
        inside.addWidget(self._documents)
        inside.addWidget(self.edit)
        inside.addLayout(buttons)
        below = in_line(_OVERHANG)
        below.addWidget(self._words, 1)
        below.addWidget(self._meter, 0, Qt.AlignmentFlag.AlignTop)
        said = QWidget()  # always has room for a line, or the field and its button would move with each
        said.setMinimumHeight(self.fontMetrics().height() + 2)
        lines = in_line(_OVERHANG)
        said.setLayout(lines)
        lines.addWidget(self._hint_line, 1)
        lines.addWidget(self._note, 1)
        self._column = QVBoxLayout(self)
        self._column.setSpacing(7)
        self._column.addWidget(self.refusal)
        self._column.addWidget(self._asked)
        self._column.addWidget(self._frame)
        self._column.addLayout(below)
        self._column.addWidget(said)
        self._words.setMinimumHeight(self.fontMetrics().height() + 2)

    def _has_content(self) -> bool:
        return bool(self.text.strip()) or self._documents.has_ready

    def _submit(self) -> None:
        if self._is_busy:
            self.refuse(_BUSY_HINT)
        elif self._documents.is_reading:
            self.refuse(_READING_HINT)
        elif self._has_content():
            self.submitted.emit(self.text)

    def _on_button(self) -> None:
        self.edit.setFocus()
        if self._is_busy:
            self.stop_requested.emit()
        else:
            self._submit()

    def _on_escape(self) -> None:
        if self._is_busy:
            self.stop_requested.emit()

    def _on_edited(self) -> None:
        self._own_hint = ""
        self._update()
        self.text_edited.emit(self.text)

    def _keep_focus(self) -> None:
        """Take the focus that went with the panel, before Qt moves it out of the composer."""
        focused = self.window().focusWidget()
        if focused is None or self.refusal.isAncestorOf(focused):
            self.edit.setFocus()

    def _update(self) -> None:
        self._update_button()
        hint = self._own_hint or self._hint
        kind = "danger" if hint == self._hint and self._is_hint_error else "muted"
        self._hint_line.setText(hint)
        self._hint_line.setVisible(bool(hint))
        if self._hint_line.property("kind") != kind:
            self._hint_line.setProperty("kind", kind)
            self._hint_line.style().polish(self._hint_line)
        self._words.setText(draft_text(self._text_tokens, self._attachment_tokens))
        draft_tokens = (self._text_tokens or 0) + (self._attachment_tokens or 0)
        self._meter.show_use(self._used_tokens, self._limit_tokens, draft_tokens, is_about=self._is_about)

    def _update_button(self) -> None:
        self._send.show_busy(self._is_busy)
        is_enabled = self._is_busy or self._has_content()
        if not is_enabled and self.window().focusWidget() is self._send:
            self.edit.setFocus()  # else Qt moves on to a setting, which what is typed then changes
        self._send.setEnabled(is_enabled)

    def _restyle(self) -> None:
        self._attach.restyle()
        self._send.restyle()
        self._documents.restyle()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        side = max(SIDE_MARGIN, (self.width() - COLUMN_WIDTH) // 2) - _OVERHANG
        self._column.setContentsMargins(side, 4, side, 5)
        super().resizeEvent(event)
