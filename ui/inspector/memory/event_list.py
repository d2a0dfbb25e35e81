"""What the guard did, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from ui.memory_history import GuardEvent
from ui.plain_text import plain_label

_SHOWN = 6


class GuardEventList(QWidget):
    """The last few actions of the guard, each with its time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._empty = plain_label("So far nothing that counts had to be given up.", wraps=True)
        self._empty.setProperty("kind", "muted")
        self._times = [plain_label() for _ in range(_SHOWN)]
        self._sentences = [plain_label(wraps=True) for _ in range(_SHOWN)]
        self._more = plain_label()
        self._more.setProperty("kind", "faint")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._empty, 0, 0, 1, 2)
        for line, (time, sentence) in enumerate(zip(self._times, self._sentences, strict=True), start=1):
            time.setProperty("kind", "faint")
            grid.addWidget(time, line, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(sentence, line, 1)
        grid.addWidget(self._more, _SHOWN + 1, 1)
        self.show_events(())

    @property
    def lines(self) -> list[str]:
        """The sentences that are shown, newest first."""
        return [label.text() for label in self._sentences if not label.isHidden()]

    def show_events(self, events: Sequence[GuardEvent]) -> None:
        """Show the last of `events`, which are in the order of their times."""
        newest = list(reversed(events))
        self._empty.setVisible(not newest)
        for line, (time, sentence) in enumerate(zip(self._times, self._sentences, strict=True)):
            is_used = line < len(newest)
            if is_used:
                action = newest[line].action
                time.setText(f"{newest[line].at:%H:%M:%S}")
                sentence.setText(action.sentence)
                sentence.setToolTip(action.reason)
            time.setVisible(is_used)
            sentence.setVisible(is_used)
        self._more.setText(f"and {len(newest) - _SHOWN:,} before")
        self._more.setVisible(len(newest) > _SHOWN)
