"""Finding words in a long text without holding up the window."""

from __future__ import annotations

import re
import time
from bisect import bisect_left

from PySide6.QtCore import QObject, QTimer, Signal

MOST_HITS = 9_999
_CHARS_AT_ONCE = 400_000
_BUDGET_S = 0.008


class TextSearch(QObject):
    """Finds all places of some words, a piece of the text at a time, between other events.

    Capitals do not count, and blanks stand for line ends as well.

    Attributes:
        hits: first character of each place and the one behind its last, in order, as far as was looked.

    Signals:
        changed: there are more hits, or all have been found.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.hits: list[tuple[int, int]] = []
        self._text = ""
        self._pattern: re.Pattern[str] | None = None
        self._at = 0
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._look_on)

    @property
    def is_running(self) -> bool:
        """Whether there is text left to look through."""
        return self._timer.isActive()

    def start(self, text: str, words: str) -> None:
        """Look for `words` from the beginning of `text`; nothing is looked for where there are none."""
        self.hits, self._text, self._at = [], text, 0
        parts = [re.escape(part) for part in words.split()]
        self._pattern = re.compile(r"\s+".join(parts), re.IGNORECASE) if parts else None
        if self._pattern is None:
            self._timer.stop()
            self.changed.emit()
        else:
            self._timer.start()
            self._look_on()

    def at_or_after(self, offset: int) -> int:
        """Return the index of the first hit that begins at a character or behind it; 0 past the last."""
        index = bisect_left(self.hits, (offset, 0))
        return index if index < len(self.hits) else 0

    def _look_on(self) -> None:
        end_s = time.perf_counter() + _BUDGET_S
        while self._at < len(self._text) and len(self.hits) < MOST_HITS:
            self._look_at_piece()
            if time.perf_counter() > end_s:
                break
        if self._at >= len(self._text) or len(self.hits) >= MOST_HITS:
            self._timer.stop()
        self.changed.emit()

    def _look_at_piece(self) -> None:
        """Take the hits that begin in the next piece; one may end behind it."""
        assert self._pattern is not None
        stop = self._at + _CHARS_AT_ONCE
        for match in self._pattern.finditer(self._text, self._at, stop + _CHARS_AT_ONCE // 8):
            if match.start() >= stop or len(self.hits) >= MOST_HITS:
                break
            self.hits.append(match.span())
        self._at = max(stop, self.hits[-1][1] if self.hits else 0)
