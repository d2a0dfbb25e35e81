"""The text of a document of any length: only the stretch around what is seen is laid out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QHBoxLayout, QScrollBar, QWidget

from app.documents.places import Heading
from ui.documents.page import Mark, PageView
from ui.documents.stretch import STRETCH_CHARS, Stretch
from ui.theme import Theme

_ABOVE_SHARE = 0.2
"""How far down the view a place is put that one goes to."""


class DocumentText(QWidget):
    """Shows a text with its headings and page numbers, and marks passages in it.

    Places are characters of the whole text.

    Signals:
        moved(int): it was scrolled; the character that one went to, or else the first that is seen.
    """

    moved = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._headings: Sequence[Heading] = ()
        self._page_starts: Sequence[int] = ()
        self._is_code = False
        self._stretch = Stretch(0, "", True)
        self._passage = (0, 0)
        self._hits: Sequence[tuple[int, int]] = ()
        self._hit = -1
        self._selected = (0, 0)
        self._is_moving = False
        self._first = 0
        self._target: int | None = None
        self.page = PageView(self.selected_text, self)
        self.page.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self.page.resized.connect(self._on_resized)
        self.page.selectionChanged.connect(self._on_selected)
        self.page.cursorPositionChanged.connect(self._on_selected)
        self.page.start_wanted.connect(lambda: self.go_to(0))
        self.page.end_wanted.connect(self._go_to_end)
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Place in the document")
        self._bar.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._bar.valueChanged.connect(self._on_bar)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.page, 1)
        row.addWidget(self._bar)
        self.setFocusProxy(self.page)
        Theme.current().changed.connect(self._restyle)

    @property
    def first_offset(self) -> int:
        """The first character that is seen."""
        return self._stretch.offset(self.page.first_position)

    def show_text(
        self, text: str, headings: Sequence[Heading], page_starts: Sequence[int], *, is_code: bool
    ) -> None:
        """Show another text from its beginning."""
        self._text, self._headings, self._page_starts = text, headings, page_starts
        self._is_code = is_code
        self._passage, self._hits, self._hit, self._selected = (0, 0), (), -1, (0, 0)
        self._lay_out(0)
        self._bar.setRange(0, len(text))
        self._bar.setPageStep(max(1, STRETCH_CHARS // 16))
        self._bar.setSingleStep(200)
        is_long = len(self._stretch.shown) < len(text)
        self._bar.setVisible(is_long)
        own = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if is_long else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.page.setVerticalScrollBarPolicy(own)
        self.go_to(0)

    def go_to(self, offset: int) -> None:
        """Scroll to a character; it is put near the top."""
        if not self._stretch.holds(offset):
            self._lay_out(offset)
        self._put(offset, round(self.page.viewport().height() * _ABOVE_SHARE), target=offset)

    def show_passage(self, start: int, stop: int) -> None:
        """Mark the characters from `start` to before `stop`, and scroll there; none where they are equal."""
        self._passage = (start, stop)
        self._mark()
        if start < stop:
            self.go_to(start)

    def show_hits(self, hits: Sequence[tuple[int, int]], current: int) -> None:
        """Mark the places where words were found; the one with the index `current` more than the others."""
        self._hits, self._hit = hits, current
        self._mark()

    def is_seen(self, offset: int) -> bool:
        """Whether the line of a character is in the view."""
        if not self._stretch.holds(offset):
            return False
        top = self.page.top_of(self._stretch.position(offset))
        return 0 <= top < self.page.viewport().height() - self.page.fontMetrics().height()

    def selected_text(self) -> str:
        """Return what is selected, in or out of sight."""
        return self._text[min(self._selected) : max(self._selected)]

    def _go_to_end(self) -> None:
        self.go_to(len(self._text))
        bar = self.page.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _lay_out(self, offset: int) -> None:
        """Lay out the stretch around a character; what is selected stays so."""
        was_moving, self._is_moving = self._is_moving, True
        self._stretch = stretch = Stretch.around(self._text, offset)
        first = bisect_left(self._headings, stretch.start, key=lambda each: each.offset)
        last = bisect_left(self._headings, stretch.stop, key=lambda each: each.offset)
        headings = [Mark(stretch.position(each.offset), each.level) for each in self._headings[first:last]]
        first = bisect_left(self._page_starts, stretch.start)
        last = bisect_left(self._page_starts, stretch.stop)
        pages = {stretch.position(self._page_starts[each]): each + 1 for each in range(first, last)}
        marks = [Mark(position, number) for position, number in pages.items()]
        self.page.show_text(stretch.shown, headings, marks, is_code=self._is_code)
        if self._selected[0] != self._selected[1]:
            self.page.select(*(stretch.position(each) for each in self._selected))
        self._mark()
        self._is_moving = was_moving

    def _put(self, offset: int, top: int, target: int | None = None) -> None:
        self._target = target
        self._is_moving = True
        self.page.put(self._stretch.position(offset), top)
        self._is_moving = False
        self._tell()

    def _on_scrolled(self) -> None:
        if self._is_moving or self.page.is_resizing:
            return
        self._target = None
        first = self.first_offset
        if self._stretch.is_near_edge(first, self._stretch.offset(self.page.last_position)):
            top = self.page.top_of(self._stretch.position(first))
            self._lay_out(first)
            self._put(first, top)
        else:
            self._tell()

    def _on_selected(self) -> None:
        """Follow what is selected; an end out of the stretch stays, and all of it is all of the text."""
        if self._is_moving:
            return
        cursor, stretch, former = self.page.textCursor(), self._stretch, self._selected
        ends = cursor.anchor(), cursor.position()
        if not cursor.hasSelection():
            self._selected = (0, 0)
        elif abs(ends[0] - ends[1]) == stretch.position(stretch.stop):
            self._selected = (0, len(self._text))
        elif former[0] == former[1]:
            self._selected = stretch.offset(ends[0]), stretch.offset(ends[1])
        else:
            anchor, position = (
                each if end == stretch.position(each) else stretch.offset(end)
                for end, each in zip(ends, former, strict=True)
            )
            self._selected = anchor, position

    def _on_resized(self) -> None:
        """Stay where one went to, or where one was."""
        if self._target is not None:
            self.go_to(self._target)
        else:
            self._put(self._first, 0)

    def _on_bar(self, value: int) -> None:
        """Follow the scroll bar of the whole document."""
        if self._is_moving:
            return
        if value >= self._bar.maximum():
            self._go_to_end()
        else:
            if not self._stretch.holds(value):
                self._lay_out(value)
            self._put(value, 0)

    def _tell(self) -> None:
        self._first = first = self.first_offset
        own = self.page.verticalScrollBar()
        is_at_end = self._stretch.is_last and own.value() == own.maximum()
        was_moving, self._is_moving = self._is_moving, True
        if not self._bar.isSliderDown():
            self._bar.setValue(len(self._text) if is_at_end else first)
        self._is_moving = was_moving
        self.moved.emit(first if self._target is None else self._target)

    def _mark(self) -> None:
        """Put the colours of the passage and of what was found on the characters."""
        palette = Theme.current().palette
        passage, found, current = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
        passage.setBackground(palette.color("accent_soft"))
        found.setBackground(palette.color("warning_soft"))
        current.setBackground(palette.color("accent"))
        current.setForeground(palette.color("on_accent"))
        stretch, marks = self._stretch, []
        first = bisect_left(self._hits, (stretch.start, 0))
        last = bisect_left(self._hits, (stretch.stop, 0))
        self.page.set_passage(*(stretch.position(each) for each in self._passage))
        spans = [(self._passage, passage)] if self._passage[0] < self._passage[1] else []
        spans += [
            (self._hits[index], current if index == self._hit else found) for index in range(first, last)
        ]
        for (start, stop), form in spans:
            if start < stretch.stop and stop > stretch.start:
                marks.append(self.page.selection(stretch.position(start), stretch.position(stop), form))
        self.page.setExtraSelections(marks)

    def _restyle(self) -> None:
        first = self.first_offset
        self._lay_out(first)
        self._put(first, 0)
