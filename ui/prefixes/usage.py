"""How much is on disk and was written today, of how much, and what happened since the start."""

from __future__ import annotations

from PySide6.QtWidgets import QGridLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.store.prefixes.records import PrefixFigures
from engine.wording import format_nbytes
from ui.plain_text import plain_label

_STEPS = 1000


class PrefixUsage(QWidget):
    """Two bars, and a line of counters."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._used = _Share("On disk")
        self._written = _Share("Written today")
        self._counters = plain_label(wraps=True)
        self._counters.setProperty("kind", "muted")
        self._counters.setAccessibleName("What happened since Octavo was started")
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        for line, share in enumerate((self._used, self._written)):
            grid.addWidget(share.name, line, 0)
            grid.addWidget(share.bar, line, 1)
            grid.addWidget(share.words, line, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(grid)
        column.addWidget(self._counters)

    def show_figures(self, figures: PrefixFigures) -> None:
        """Show the figures of a moment."""
        self._used.show_share(figures.nbytes, figures.most_nbytes)
        self._written.show_share(figures.written_today_nbytes, figures.most_written_nbytes)
        self._counters.setText(counters_text(figures))


class _Share:
    """A name, a bar, and in words the amount and what it may be."""

    def __init__(self, name: str) -> None:
        self.name = QLabel(name)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(name)
        self.words = plain_label()
        self.words.setAccessibleName(f"{name}, in numbers")

    def show_share(self, nbytes: int, most_nbytes: int) -> None:
        share = nbytes / most_nbytes if most_nbytes > 0 else 1.0
        self.bar.setValue(round(_STEPS * min(share, 1.0)))
        self.words.setText(f"{format_nbytes(nbytes)} of {format_nbytes(max(0, most_nbytes))}")
        self.bar.setAccessibleDescription(self.words.text())


def counters_text(figures: PrefixFigures) -> str:
    """Return what happened to pages since the start, and what is still to be written."""
    counts = (
        (figures.saved, "saved"),
        (figures.restored, "reused from disk"),
        (figures.evicted, "removed for room"),
        (figures.damaged, "damaged and dropped"),
    )
    happened = [f"{count:,} {word}" for count, word in counts if count]
    sentences = [f"Pages since Octavo was started: {', '.join(happened)}."] if happened else []
    if figures.waiting_nbytes:
        sentences.append(f"{format_nbytes(figures.waiting_nbytes)} are still to be written.")
    return " ".join(sentences) or "Since Octavo was started no full page was saved or reused."
