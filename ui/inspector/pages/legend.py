"""What colours, marks, hatch and frame of the page map mean, and how many pages have each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from ui.chat.flow_layout import FlowLayout
from ui.inspector.pages.cells import CellPainter
from ui.inspector.pages.looks import LEVELS, CellLook, PageState
from ui.theme import Theme

_SIDE = 14
_STEPS = 5
_BRIGHT = LEVELS - 2

_TIPS = {
    PageState.HOT: "Exact, at 16 bits: the newest pages",
    PageState.WARM: "At 8 bits or more: pages before those, the first page, and what is read much",
    PageState.COLD: "At the bits that you set: all older pages",
    PageState.DISK: "Not in memory; it comes back before it is read",
}


class PagesLegend(QWidget):
    """Small pictures with words, in rows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        flow = FlowLayout(self, spacing=0)
        self._states = {state: self._add(flow, _look(state), tip) for state, tip in _TIPS.items()}
        self._open = self._add(flow, None, "Exact, at 16 bits: the last tokens, until they fill their page")
        shared = CellLook(PageState.COLD, _BRIGHT, shared=True, pinned=False)
        self._shared = self._add(flow, shared, "More than one branch or conversation reads the page")
        pinned = CellLook(PageState.COLD, _BRIGHT, shared=False, pinned=True)
        self._pinned = self._add(flow, pinned, "Kept a tier higher than its age gives, because you want that")
        flow.addWidget(_HeatKey())

    def show_looks(self, looks: Sequence[CellLook], *, has_open: bool) -> None:
        """Show how many pages have each look, and whether there is an open one."""
        states = Counter(look.state for look in looks)
        for state, item in self._states.items():
            item.show_text(f"{state.value} {states[state]:,}")
        self._states[PageState.DISK].setVisible(states[PageState.DISK] > 0)
        self._open.show_text(f"open {int(has_open)}")
        self._shared.show_text(f"shared {sum(look.shared for look in looks):,}")
        self._pinned.show_text(f"pinned {sum(look.pinned for look in looks):,}")

    def _add(self, flow: FlowLayout, look: CellLook | None, tip: str) -> _Item:
        item = _Item(look)
        item.setToolTip(tip)
        flow.addWidget(item)
        return item


def _look(state: PageState) -> CellLook:
    return CellLook(state, _BRIGHT, shared=False, pinned=False)


class _Item(QWidget):
    """A picture of a cell and a word; without a look that of the open page."""

    def __init__(self, look: CellLook | None) -> None:
        super().__init__()
        self._text = QLabel()
        self._text.setProperty("kind", "muted")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 12, 2)
        row.setSpacing(6)
        row.addWidget(_Picture(look))
        row.addWidget(self._text)

    def show_text(self, text: str) -> None:
        self._text.setText(text)


class _Picture(QWidget):
    """A cell as the map paints it; the half-full open page without a look."""

    def __init__(self, look: CellLook | None) -> None:
        super().__init__()
        self._look = look
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def paintEvent(self, event: QPaintEvent) -> None:
        cells = CellPainter(_SIDE, self.devicePixelRatioF(), Theme.current().palette)
        picture = cells.open_picture(0.5) if self._look is None else cells.picture(self._look)
        QPainter(self).drawPixmap(QPoint(0, 0), picture)


class _HeatKey(QWidget):
    """From pale to bright: how much the pages are read."""

    def __init__(self) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(2)
        row.addWidget(_muted("read little"))
        row.addSpacing(4)
        for step in range(_STEPS):
            look = CellLook(PageState.COLD, step * (LEVELS - 1) // (_STEPS - 1), shared=False, pinned=False)
            row.addWidget(_Picture(look))
        row.addSpacing(4)
        row.addWidget(_muted("much"))
        self.setToolTip("The share of the attention that a page gets, compared with an even share")


def _muted(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "muted")
    return label
