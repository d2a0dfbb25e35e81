"""What happened to pages, and how much of the attention is caught by those that are read."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from engine.kv.heat import ENOUGH_CAUGHT
from engine.kv.page_map import PageCounters, PageMap
from ui.plain_text import plain_label
from ui.theme import Theme

_COUNTERS = {
    "hits": ("Hits", "Pages that a new reply found in memory and did not read again"),
    "restores": ("Restores", "Pages that came back from disk, from this start or an earlier one"),
    "spills": ("Spills", "Pages that went to disk"),
    "evictions": ("Evictions", "Pages that were given up; their text must be read again"),
}
_BAR_HEIGHT, _LINE_HEIGHT = 6, 14


class PageCounts(QWidget):
    """Four numbers, since the program started."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(0, 1)
        grid.setColumnMinimumWidth(2, 10)
        grid.setColumnStretch(3, 1)
        self._values: dict[str, QLabel] = {}
        since = plain_label("Since Octavo was started, in all conversations:", wraps=True)
        since.setProperty("kind", "faint")
        grid.addWidget(since, 0, 0, 1, 5)
        for place, (field, (title, tip)) in enumerate(_COUNTERS.items()):
            name, value = QLabel(title), QLabel()
            name.setProperty("kind", "muted")
            value.setAccessibleName(f"Pages: {title.lower()}")
            row, column = divmod(place, 2)
            grid.addWidget(name, row + 1, 3 * column)
            grid.addWidget(value, row + 1, 3 * column + 1, Qt.AlignmentFlag.AlignRight)
            for label in (name, value):
                label.setToolTip(tip)
            self._values[field] = value

    def show_counters(self, counters: PageCounters) -> None:
        """Show what happened so far."""
        for field, value in self._values.items():
            value.setText(f"{getattr(counters, field):,}")


class CaughtBar(QWidget):
    """The share of the attention that the pages which are read catch, and the line of what is enough."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = QLabel("Attention caught")
        self._value = plain_label()
        self._value.setAccessibleName("Attention caught")
        self._bar = _Bar()
        self._words = plain_label(wraps=True)
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self._value)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(head)
        column.addWidget(self._bar)
        column.addWidget(self._words)

    def show_caught(self, page_map: PageMap) -> None:
        """Show the share of a map; all of it without an attention budget."""
        caught, is_limited = page_map.caught, page_map.attention_pages is not None
        is_low = is_limited and caught is not None and caught < ENOUGH_CAUGHT
        self._value.setText(_value_text(page_map))
        self._bar.setVisible(is_limited)
        self._bar.show_share(caught if is_limited else None, is_low)
        self._words.setText(
            f"Less than {ENOUGH_CAUGHT:.0%}. Raise the attention budget in Precision." if is_low else ""
        )
        self._words.setVisible(is_low)
        for label in (self._value, self._words):
            kind = "warning" if is_low else ""
            if label.property("kind") != kind:
                label.setProperty("kind", kind)
                label.style().polish(label)


def _value_text(page_map: PageMap) -> str:
    if page_map.attention_pages is None:
        return "all of it"
    if page_map.caught is None:
        return "not measured yet"
    return f"{min(page_map.caught, 0.999 if page_map.caught < 1 else 1):.1%}"


class _Bar(QWidget):
    """A bar from 0 to all, with a line at what is enough."""

    def __init__(self) -> None:
        super().__init__()
        self._share: float | None = None
        self._is_low = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setToolTip(f"The line is at {ENOUGH_CAUGHT:.0%}: with less, answers may miss something")

    def show_share(self, share: float | None, is_low: bool) -> None:
        self._share, self._is_low = share, is_low
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, _LINE_HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        palette, painter = Theme.current().palette, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        top = (self.height() - _BAR_HEIGHT) / 2
        role = "warning" if self._is_low else "accent"
        for share, color in (
            (1.0, palette.color("border_strong")),
            (self._share or 0.0, palette.color(role)),
        ):
            if share > 0:
                painter.setBrush(color)
                painter.drawRoundedRect(QRectF(0, top, self.width() * share, _BAR_HEIGHT), 3, 3)
        line = QRectF(round(self.width() * ENOUGH_CAUGHT) - 1, 0, 2, self.height())
        painter.fillRect(line, palette.color("text"))
