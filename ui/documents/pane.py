"""The reader pane: a document's text with its headings, and words that are looked for in it."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSplitter, QVBoxLayout, QWidget

from app.documents.formats import Format
from app.documents.places import Places, page_ranges
from app.store.records import Attachment
from ui.chat.buttons import CopyButton, IconButton
from ui.chat.elided_label import ElidedLabel
from ui.documents.find_bar import FindBar
from ui.documents.outline import Outline
from ui.documents.search import TextSearch
from ui.documents.text import DocumentText
from ui.plain_text import plain_label
from ui.theme import Theme

_OUTLINE_SHARE = 3
"""The text gets so many times as much height as the contents."""


class ReaderPane(QWidget):
    """Shows the text of one document, as the model gets it.

    Attributes:
        text: the text itself.
        outline: its headings, shown on request.
        find_bar: looks for words, shown on request.

    Signals:
        closed: the user is done with it.
    """

    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidePane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._document = ""
        self._places = Places.of("", "text")
        self._title = ElidedLabel()
        self._title.setProperty("kind", "heading")
        self._detail = plain_label(wraps=True)
        self._detail.setProperty("kind", "muted")
        self._place = ElidedLabel()
        self._place.setProperty("kind", "faint")
        self._contents = IconButton("list", "Show or hide the contents", self)
        self._contents.setCheckable(True)
        self._find = IconButton("search", "Find in this document (Ctrl+F)", self)
        self._copy = CopyButton("Copy all of the text", lambda: self._document, self)
        self._close = IconButton("close", "Close the document (Esc)", self)
        self.outline = Outline()
        self.find_bar = FindBar(self)
        self.text = DocumentText()
        self._search = TextSearch(self)
        self._hit = -1
        self._from = 0
        self._lay_out()
        self._connect()

    def show_document(self, attachment: Attachment, places: Places) -> None:
        """Show a document from its beginning."""
        self._document, self._places = attachment.text, places
        self._title.setText(attachment.title)
        self._detail.setText(_detail(attachment, places))
        self.setAccessibleName(f"Text of {attachment.title}")
        self.end_search()
        self.outline.show_places(places)
        self._contents.setVisible(bool(places.headings))
        self.outline.setVisible(bool(places.headings) and self._contents.isChecked())
        is_code = attachment.kind == Format.CODE.value
        self.text.show_text(attachment.text, places.headings, attachment.page_starts, is_code=is_code)

    def show_passage(self, start: int, stop: int) -> None:
        """Mark a passage of the document that is shown, and scroll there."""
        self.text.show_passage(start, stop)
        place = self._places.at(start).sentence_words
        self.text.page.setAccessibleDescription(f"Passage at {place}" if place else "")

    def begin_search(self) -> None:
        """Show the field for words to look for."""
        self.find_bar.begin()
        self._from = self.text.first_offset

    def end_search(self) -> None:
        """Hide the field, and take the marks away."""
        self.find_bar.hide()
        self._search.start("", "")
        self.text.show_hits((), -1)

    def event(self, event: QEvent) -> bool:  # noqa: D102
        if (
            isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.ShortcutOverride
            and (event.key() == Qt.Key.Key_Escape or event.matches(QKeySequence.StandardKey.Find))
        ):
            event.accept()  # before Stop and the search of titles, which have these keys elsewhere
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if event.matches(QKeySequence.StandardKey.Find):
            self.begin_search()
        elif event.key() == Qt.Key.Key_Escape and not self.find_bar.isHidden():
            self._leave_search()
        elif event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setContentsMargins(16, 10, 8, 0)
        head.setSpacing(0)
        head.addWidget(self._title, 1)
        for button in (self._contents, self._find, self._copy, self._close):
            head.addWidget(button)
        detail = QVBoxLayout()
        detail.setContentsMargins(16, 0, 16, 8)
        detail.addWidget(self._detail)
        line = QFrame()
        line.setProperty("kind", "line")
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(1)
        self._split.addWidget(self.outline)
        self._split.addWidget(self.text)
        self._split.setStretchFactor(0, 1)
        self._split.setStretchFactor(1, _OUTLINE_SHARE)
        foot = QHBoxLayout()
        foot.setContentsMargins(16, 5, 16, 7)
        foot.addWidget(self._place, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addLayout(detail)
        column.addWidget(self.find_bar)
        column.addWidget(line)
        column.addWidget(self._split, 1)
        column.addLayout(foot)
        self._contents.setChecked(True)
        self.find_bar.hide()

    def _connect(self) -> None:
        self._contents.toggled.connect(self._on_contents)
        self._find.clicked.connect(self.begin_search)
        self._close.clicked.connect(self.closed)
        self.outline.chosen.connect(self.text.go_to)
        self.text.moved.connect(self._on_moved)
        self.find_bar.words_changed.connect(self._on_words)
        self.find_bar.step_requested.connect(self._step)
        self.find_bar.closed.connect(self._leave_search)
        self._search.changed.connect(self._on_found)
        Theme.current().changed.connect(self._restyle)

    def _leave_search(self) -> None:
        self.end_search()
        self.text.setFocus()

    def _on_contents(self, is_shown: bool) -> None:
        self.outline.setVisible(is_shown)
        if is_shown:
            self.outline.follow(self.text.first_offset)
            self.outline.setFocus()

    def _on_moved(self, offset: int) -> None:
        self._place.setText(self._places.at(offset).words)
        if not self.outline.isHidden() and not self.outline.hasFocus():
            self.outline.follow(offset)

    def _on_words(self, words: str) -> None:
        self._hit = -1
        self._search.start(self._document, words)

    def _on_found(self) -> None:
        """Show what was found so far, and go to the first place behind where the search began."""
        hits = self._search.hits
        is_near = bool(hits) and (hits[-1][0] >= self._from or not self._search.is_running)
        if self._hit < 0 and is_near:
            self._go_to_hit(self._search.at_or_after(self._from))
        else:
            self._show_hits()

    def _step(self, step: int) -> None:
        if self._search.hits:
            self._go_to_hit((self._hit + step) % len(self._search.hits))

    def _go_to_hit(self, index: int) -> None:
        self._hit = index
        self._from = self._search.hits[index][0]
        if not self.text.is_seen(self._from):
            self.text.go_to(self._from)
        self._show_hits()

    def _show_hits(self) -> None:
        hits = self._search.hits
        self.text.show_hits(hits, self._hit)
        self.find_bar.show_count(self._hit, len(hits), is_running=self._search.is_running)

    def _restyle(self) -> None:
        for button in (self._contents, self._find, self._copy, self._close):
            button.restyle()


def _detail(attachment: Attachment, places: Places) -> str:
    """Return what is said below the title, such as `14 pages · 61,204 characters`."""
    parts = [f"{places.num_pages:,} pages" if places.num_pages > 1 else "1 page"] if places.num_pages else []
    parts.append(f"{len(attachment.text):,} characters")
    words = " · ".join(parts)
    textless = places.textless_pages
    if not textless:
        return words
    pages = page_ranges(textless)
    return f"{words}. No text on page{'' if len(textless) == 1 else 's'} {pages}."
