"""How many segments of a document were read for an answer, which, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from app.reading.shown import Coverage
from ui.chat.coverage_strip import CoverageStrip
from ui.plain_text import plain_label


class CoverageRow(QWidget):
    """How many segments of a document were read, which, and how to go on where some were not.

    Signals:
        passage_requested: show a segment: its attachment's id, its first character, the one behind its last.
        continue_requested: segments that were not read are to be read now.
        answer_now_requested: an answer is wanted from what was read so far.
    """

    passage_requested = Signal(int, int, int)
    continue_requested = Signal()
    answer_now_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._words = plain_label(wraps=True)
        self._words.setProperty("kind", "muted")
        self._strip = CoverageStrip()
        self._strip.chosen.connect(self._open)
        self._continue = QPushButton()
        self._continue.clicked.connect(self.continue_requested)
        self._answer = QPushButton("Answer from what was read")
        self._answer.clicked.connect(self.answer_now_requested)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._continue)
        buttons.addWidget(self._answer)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 4)
        column.setSpacing(6)
        column.addWidget(self._words)
        column.addWidget(self._strip)
        column.addLayout(buttons)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The strip and the buttons that there are."""
        stops: list[QWidget] = [self._strip, self._continue, self._answer]
        return [stop for stop in stops if not stop.isHidden()]

    def show_coverage(self, coverage: Coverage, *, names_document: bool) -> None:
        """Show how far a document has been read."""
        self._coverage = coverage
        self._words.setText(coverage_words(coverage, names_document=names_document))
        self._strip.show_coverage(coverage)
        self._strip.setVisible(bool(coverage.segments))

    def offer(self, coverages: Sequence[Coverage]) -> None:
        """Offer to go on with documents that have not been read to their ends, of which this is the last.

        Nothing is offered where there are none.
        """
        has_unread = any(each.num_read + each.num_failed < len(each.segments) for each in coverages)
        self._continue.setText("Continue reading" if has_unread else "Read again what failed")
        self._continue.setVisible(any(each.num_read < len(each.segments) for each in coverages))
        are_some_read = any(each.num_read for each in coverages)
        self._answer.setVisible(are_some_read and any(each.is_unfinished for each in coverages))

    def set_actions_enabled(self, is_enabled: bool) -> None:
        """Allow to read on, or not."""
        self._continue.setEnabled(is_enabled)
        self._answer.setEnabled(is_enabled)

    def _open(self, index: int) -> None:
        segment = self._coverage.segments[index].segment
        self.passage_requested.emit(self._coverage.reading.attachment_id, segment.start, segment.stop)


def coverage_words(coverage: Coverage, *, names_document: bool) -> str:
    """Return how many segments were read, such as `Read 33 of 34 segments. 1 could not be read.`"""
    of = f" of “{coverage.title}”" if names_document else ""
    count, failed = len(coverage.segments), coverage.num_failed
    words = f"Read {coverage.num_read:,} of {count:,} segment{'' if count == 1 else 's'}{of}."
    if failed:
        words = f"{words} {failed:,} could not be read."
    unread = count - coverage.num_read - failed
    if unread and coverage.reading.is_done:
        words = f"{words} The answer does not know the others."
    return words
