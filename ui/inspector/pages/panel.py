"""The Pages panel: the map, its legend, what is told of a page, and what happened to pages."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QMenu, QVBoxLayout, QWidget

from engine.engine import LoadedModel
from engine.kv.page_map import PageMap, TextSpan
from engine.kv.usage import PageInfo
from ui.inspector.pages.card import PageCard
from ui.inspector.pages.counters import CaughtBar, PageCounts
from ui.inspector.pages.details import PageDetails, describe_page
from ui.inspector.pages.groups import cell_tokens, group_pages, num_cells
from ui.inspector.pages.legend import PagesLegend
from ui.inspector.pages.looks import CellLook, cell_looks
from ui.inspector.pages.map_view import PageMapView
from ui.plain_text import plain_label

_NO_MODEL = "No model is loaded. Choose one to see the pages of its memory here."
_NO_CONVERSATION = (
    "No conversation is in memory. Send a message, and the pages that the model reads show here."
)
_NO_PAGES = "This model keeps its memory in a form of its own, without pages. There is nothing to show here."
_HOW = "Point at a page, or press Tab and the arrow keys, to see what is in it."
_COMING = "It comes back before it is read."
_OTHER = "These are the pages of another conversation, which the model read last."


class PagesPanel(QWidget):
    """Shows the pages of the conversation in memory.

    Signals:
        pin_requested(int, bool): the number of a page, and whether it is to be pinned.
        watching_changed(bool): whether the panel is looked at, so that maps are wanted.
    """

    pin_requested = Signal(int, bool)
    watching_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pages: PageMap | None = None
        self._loaded: LoadedModel | None = None
        self._owners: list[TextSpan | None] = []
        self._asked_pins: dict[int, bool] = {}
        self._is_open = True
        self._words = plain_label(wraps=True)
        self._words.setProperty("kind", "muted")
        self._summary = plain_label(wraps=True)
        self._caught = CaughtBar()
        self._counts = PageCounts()
        self._legend = PagesLegend()
        self._map = PageMapView()
        self._card = PageCard()
        self._card.setParent(self)
        self._content = QWidget()
        self._lay_out()
        self._map.shown_changed.connect(self._on_shown)
        self._map.chosen.connect(self._toggle_pin)
        self._map.menu_asked.connect(self._show_menu)
        self._refresh()

    def set_pages(self, pages: PageMap | None, is_open_conversation: bool) -> None:
        """Show the pages that the engine holds, None for none; they may be another conversation's."""
        self._pages, self._is_open = pages, is_open_conversation
        self._forget_done_pins()
        self._refresh()

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Take the model, whose tokenizer writes the text of a page; None when there is none."""
        if loaded is not self._loaded:
            self._loaded = loaded
            self._pages = None if loaded is None else self._pages
            self._refresh()

    def showEvent(self, event: QShowEvent) -> None:  # noqa: D102
        super().showEvent(event)
        self._refresh()
        self._map.follow_scrolling()
        self.watching_changed.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: D102
        super().hideEvent(event)
        self._card.hide()
        self.watching_changed.emit(False)

    def _lay_out(self) -> None:
        inner = QVBoxLayout(self._content)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(10)
        line = QFrame()
        line.setProperty("kind", "line")
        how = plain_label(_HOW, wraps=True)
        how.setProperty("kind", "faint")
        for widget in (self._summary, self._caught, self._counts, line, self._legend, how, self._map):
            inner.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self._words)
        column.addWidget(self._content)

    def _refresh(self) -> None:
        """Show what is known; a panel that nobody sees waits until it is shown."""
        if not self.isVisible():
            return
        words = self._empty_words()
        pages = self._pages
        self._content.setVisible(not words)
        self._words.setVisible(bool(words) or not self._is_open)
        self._words.setText(words or _OTHER)
        if words or pages is None:
            self._map.set_cells((), (), 0.0)
            self._card.hide()
            return
        groups, looks = group_pages(pages), self._looks(pages)
        self._owners = [group.span for group in groups for _ in range(group.count)]
        self._summary.setText(_summary_text(pages))
        self._caught.show_caught(pages)
        self._counts.show_counters(pages.counters)
        self._legend.show_looks(looks, has_open=bool(pages.open_tokens))
        self._map.set_cells(groups, looks, len(pages.open_tokens) / pages.page_tokens)
        self._show_card()

    def _looks(self, pages: PageMap) -> list[CellLook]:
        """Return what is drawn for each page, with the pins that were asked for as if they were there."""
        return [
            look._replace(pinned=self._asked_pins.get(page.number, look.pinned))
            for look, page in zip(cell_looks(pages), pages.pages, strict=True)
        ]

    def _forget_done_pins(self) -> None:
        """Keep of the pins that were asked for those that are still to come."""
        if self._asked_pins:
            pages = self._pages.pages if self._pages is not None else ()
            pinned = {page.number: page.pinned for page in pages}
            self._asked_pins = {
                number: asked
                for number, asked in self._asked_pins.items()
                if pinned.get(number, asked) != asked
            }

    def _empty_words(self) -> str:
        if self._pages is None or not (self._pages.pages or self._pages.open_tokens):
            return _NO_MODEL if self._loaded is None else _NO_CONVERSATION
        return "" if self._pages.is_paged else _NO_PAGES

    def _on_shown(self) -> None:
        details = self._show_card()
        if details is not None and self._map.shown == self._map.current:
            self._map.announce(details.sentence)

    def _show_card(self) -> PageDetails | None:
        """Show what is known of the cell that is pointed at, and return it; None where there is none."""
        index, pages = self._map.shown, self._pages
        if index is None or pages is None or not self.isVisible():
            self._card.hide()
            return None
        decode = None if self._loaded is None else self._loaded.counter.decode
        details = describe_page(pages, index, self._owners[index], decode)
        self._card.show_page(details, self._map.picture(index), self._hint(index))
        window = self.window()
        pane, cell = self.rect(), self._map.cell_rect(index)
        pane.moveTo(self.mapTo(window, pane.topLeft()))
        cell.moveTo(self._map.mapTo(window, cell.topLeft()))
        self._card.place(window, pane, cell)
        return details

    def _hint(self, index: int) -> str:
        if self._pages is None or index >= len(self._pages.pages):
            return ""
        page = self._pages.pages[index]
        if page.is_on_disk:
            return _COMING
        if page.number in self._asked_pins:
            return f"Will be {'pinned' if self._asked_pins[page.number] else 'unpinned'} after the reply."
        return f"Enter or a right click {'unpins' if page.pinned else 'pins'} it."

    def _toggle_pin(self, index: int) -> None:
        if (page := self._pinnable(index)) is not None:
            self._ask_pin(page, not self._asked_pins.get(page.number, page.pinned))

    def _pinnable(self, index: int) -> PageInfo | None:
        """Return the page of a cell, None for the open one and for those that are not in memory yet."""
        if self._pages is None or index >= len(self._pages.pages) or self._pages.pages[index].is_on_disk:
            return None
        return self._pages.pages[index]

    def _ask_pin(self, page: PageInfo, pinned: bool) -> None:
        """Have a page pinned, or no longer; that is done when no reply is written, and shown at once."""
        self._asked_pins[page.number] = pinned
        if pinned == page.pinned:
            del self._asked_pins[page.number]
        self.pin_requested.emit(page.number, pinned)
        self._refresh()

    def _show_menu(self, index: int, where: QPoint) -> None:
        if (page := self._pinnable(index)) is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        is_pinned = self._asked_pins.get(page.number, page.pinned)
        action = menu.addAction("Unpin this page" if is_pinned else "Pin this page")
        action.triggered.connect(lambda: self._ask_pin(page, not is_pinned))
        menu.popup(where)


def _summary_text(pages: PageMap) -> str:
    """Return how much there is: `40 pages, 10,253 tokens; 12 on disk`."""
    count, tokens = num_cells(pages), sum(cell_tokens(pages))
    if not pages.pages:
        return f"1 open page, {tokens:,} of {pages.page_tokens:,} tokens"
    words = f"{count:,} page{'' if count == 1 else 's'}, {tokens:,} tokens"
    num_on_disk = sum(page.is_on_disk for page in pages.pages)
    if not num_on_disk:
        return words
    return f"{words}; {num_on_disk:,} on disk"
