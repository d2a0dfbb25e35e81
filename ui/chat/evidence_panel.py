"""What stands under an answer about documents: its sources, and what was read for it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.documents.ways import DocumentWay
from app.reading.records import SourceKind
from app.reading.shown import Coverage, Evidence
from ui.chat.coverage_strip import CoverageStrip
from ui.chat.passage_list import PassageFold, PassageList
from ui.plain_text import plain_label

_SHOWN_SOURCES = 6
"""So many sources are in sight; the rest is folded."""
_ATTENDED = "The model's attention went here while it answered. This is an indication, not a proof."


class EvidencePanel(QWidget):
    """Sources that the answer cites, passages that were looked at, segments that were read, attention.

    Signals:
        passage_requested: show a passage: its attachment's id, its first character, the one behind its last.
        continue_requested: segments that were not read are to be read now.
        answer_now_requested: an answer is wanted from what was read so far.
        focus_stops_changed: something that takes the focus came or went.
    """

    passage_requested = Signal(int, int, int)
    continue_requested = Signal()
    answer_now_requested = Signal()
    focus_stops_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._evidence = Evidence()
        self._lists: list[PassageList | PassageFold] = []
        self._coverages: list[CoverageRow] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 6, 0, 2)
        self._column.setSpacing(2)
        self.are_actions_enabled = True
        self.hide()

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab goes through, from the top."""
        parts: list[PassageList | PassageFold | CoverageRow] = [*self._lists, *self._coverages]
        return [stop for part in parts for stop in part.focus_stops]

    def show_evidence(self, evidence: Evidence) -> None:
        """Show what there is, nothing where there is none."""
        if evidence == self._evidence:
            return
        open_titles = {each.title for each in self._lists if isinstance(each, PassageFold) and each.is_open}
        self._evidence = evidence
        self._clear()
        self._add_sources(evidence)
        for each in self._lists:
            if isinstance(each, PassageFold):
                each.set_open(each.title in open_titles)
        for coverage in evidence.coverages:
            if coverage.reading.way is DocumentWay.SEGMENTS:
                self._add_coverage(coverage)
        self.setVisible(bool(self._lists or self._coverages or self._column.count()))
        self.set_actions_enabled(self.are_actions_enabled)
        self.focus_stops_changed.emit()

    def set_actions_enabled(self, is_enabled: bool) -> None:
        """Allow to read on, or not while a reply is written."""
        self.are_actions_enabled = is_enabled
        for each in self._coverages:
            each.set_actions_enabled(is_enabled)

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        for each in self._lists:
            if isinstance(each, PassageFold):
                each.restyle()
        self.update()

    def _add_sources(self, evidence: Evidence) -> None:
        several = len({each.source.attachment_id for each in evidence.passages}) > 1
        cited, looked_at = evidence.cited, evidence.of_kind(SourceKind.LOOKED_AT)
        if cited:
            title = QLabel("Sources")
            title.setProperty("kind", "section")
            title.setContentsMargins(8, 0, 0, 2)
            self._column.addWidget(title)
            self._add_list(PassageList(cited[:_SHOWN_SOURCES], names_documents=several))
        if len(cited) > _SHOWN_SOURCES:
            rest = cited[_SHOWN_SOURCES:]
            self._add_list(PassageFold(f"{len(rest):,} more", rest, names_documents=several))
        if looked_at:
            count = "1 passage" if len(looked_at) == 1 else f"{len(looked_at):,} passages"
            self._add_list(PassageFold(f"Looked at {count}", looked_at, names_documents=several))
        for each in evidence.coverages:
            if each.reading.way is DocumentWay.LOOK_UP and each.reading.is_done and not each.segments:
                self._add_words(f"Nothing that fits the question was found in “{each.title}”.")
        attended = evidence.of_kind(SourceKind.ATTENDED)
        if attended:
            fold = PassageFold("What the answer read", attended, names_documents=several, sentence=_ATTENDED)
            self._add_list(fold)

    def _add_list(self, part: PassageList | PassageFold) -> None:
        part.passage_requested.connect(self.passage_requested)
        if isinstance(part, PassageFold):
            part.focus_stops_changed.connect(self.focus_stops_changed)
        self._lists.append(part)
        self._column.addWidget(part)

    def _add_words(self, words: str) -> None:
        label = plain_label(words, wraps=True)
        label.setProperty("kind", "muted")
        label.setContentsMargins(8, 2, 0, 2)
        self._column.addWidget(label)

    def _add_coverage(self, coverage: Coverage) -> None:
        segmented = [each for each in self._evidence.coverages if each.reading.way is DocumentWay.SEGMENTS]
        row = CoverageRow(coverage, names_document=len(segmented) > 1, is_running=self._evidence.is_running)
        row.passage_requested.connect(self.passage_requested)
        row.continue_requested.connect(self.continue_requested)
        row.answer_now_requested.connect(self.answer_now_requested)
        self._coverages.append(row)
        self._column.addWidget(row)

    def _clear(self) -> None:
        self._lists, self._coverages = [], []
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()


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

    def __init__(self, coverage: Coverage, *, names_document: bool, is_running: bool) -> None:
        super().__init__()
        self._coverage = coverage
        words = plain_label(coverage_words(coverage, names_document=names_document), wraps=True)
        words.setProperty("kind", "muted")
        self._strip = CoverageStrip(coverage)
        self._strip.setVisible(bool(coverage.segments))
        self._strip.chosen.connect(self._open)
        has_unread = coverage.num_read + coverage.num_failed < len(coverage.segments)
        self._continue = QPushButton("Continue reading" if has_unread else "Read again what failed")
        self._continue.clicked.connect(self.continue_requested)
        self._answer = QPushButton("Answer from what was read")
        self._answer.clicked.connect(self.answer_now_requested)
        is_partial = coverage.num_read < len(coverage.segments) and not is_running
        self._continue.setVisible(is_partial)
        self._answer.setVisible(is_partial and coverage.num_read > 0 and coverage.is_unfinished)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._continue)
        buttons.addWidget(self._answer)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 4)
        column.setSpacing(6)
        column.addWidget(words)
        column.addWidget(self._strip)
        column.addLayout(buttons)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The strip and the buttons that there are."""
        stops: list[QWidget] = [self._strip, self._continue, self._answer]
        return [stop for stop in stops if not stop.isHidden()]

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
