"""What stands under an answer about documents: its sources, and what was read for it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.reading.records import SourceKind
from app.reading.shown import Evidence, ShownPassage
from ui.chat.coverage_row import CoverageRow
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
        self._rows: dict[int, CoverageRow] = {}
        self._sources = QVBoxLayout()
        self._sources.setSpacing(2)
        self._coverages = QVBoxLayout()
        self._since = plain_label(wraps=True)
        self._since.setProperty("kind", "muted")
        self._since.setContentsMargins(8, 0, 0, 2)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 2)
        column.setSpacing(2)
        column.addLayout(self._sources)
        column.addLayout(self._coverages)
        column.addWidget(self._since)
        self.are_actions_enabled = True
        self.hide()

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab goes through, from the top."""
        parts: list[PassageList | PassageFold | CoverageRow] = [*self._lists, *self._rows.values()]
        return [stop for part in parts for stop in part.focus_stops]

    def show_evidence(self, evidence: Evidence) -> None:
        """Show what there is, nothing where there is none.

        What stays keeps the keyboard: segments are read while one walks through them.
        """
        former, self._evidence = self._evidence, evidence
        if evidence == former:
            return
        if _sources_of(evidence) != _sources_of(former):
            self._show_sources()
        self._show_coverages()
        self.setVisible(bool(self._sources.count() or self._rows))
        self.set_actions_enabled(self.are_actions_enabled)
        self.focus_stops_changed.emit()

    def set_actions_enabled(self, is_enabled: bool) -> None:
        """Allow to read on, or not while a reply is written."""
        self.are_actions_enabled = is_enabled
        for each in self._rows.values():
            each.set_actions_enabled(is_enabled)

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        for each in self._lists:
            if isinstance(each, PassageFold):
                each.restyle()
        self.update()

    def _show_sources(self) -> None:
        """Show the passages anew; folds that are open stay so."""
        open_titles = {each.title for each in self._lists if isinstance(each, PassageFold) and each.is_open}
        self._lists = []
        _clear(self._sources)
        self._add_sources(self._evidence)
        for each in self._lists:
            if isinstance(each, PassageFold):
                each.set_open(each.title in open_titles)

    def _add_sources(self, evidence: Evidence) -> None:
        cited, notes = evidence.cited, evidence.uncited(SourceKind.NOTED)
        looked_at = evidence.uncited(SourceKind.LOOKED_AT)
        if cited:
            title = QLabel("Sources")
            title.setProperty("kind", "section")
            title.setContentsMargins(8, 0, 0, 2)
            self._sources.addWidget(title)
            self._add_list(PassageList(cited[:_SHOWN_SOURCES], names_documents=evidence.names_documents))
        self._add_fold(f"{len(cited) - _SHOWN_SOURCES:,} more", cited[_SHOWN_SOURCES:])
        self._add_fold(f"{_counted(notes, 'note')} that the answer does not cite", notes)
        noun = "passage" if looked_at == evidence.of_kind(SourceKind.LOOKED_AT) else "more passage"
        self._add_fold(f"Looked at {_counted(looked_at, noun)}", looked_at)
        for document in evidence.found_nothing:
            self._add_words(f"Nothing that fits the question was found in “{document}”.")
        if evidence.found_nothing and not evidence.passages:
            self._add_words("The answer may be made up.")
        self._add_fold("What the answer read", evidence.of_kind(SourceKind.ATTENDED), sentence=_ATTENDED)

    def _add_fold(self, title: str, passages: Sequence[ShownPassage], *, sentence: str = "") -> None:
        """Add passages that are folded away, if there are any."""
        if passages:
            names = self._evidence.names_documents
            fold = PassageFold(title, passages, names_documents=names, sentence=sentence)
            self._add_list(fold)

    def _add_list(self, part: PassageList | PassageFold) -> None:
        part.passage_requested.connect(self.passage_requested)
        if isinstance(part, PassageFold):
            part.focus_stops_changed.connect(self.focus_stops_changed)
        self._lists.append(part)
        self._sources.addWidget(part)

    def _add_words(self, words: str) -> None:
        label = plain_label(words, wraps=True)
        label.setProperty("kind", "muted")
        label.setContentsMargins(8, 2, 0, 2)
        self._sources.addWidget(label)

    def _show_coverages(self) -> None:
        """Show what was read in segments, document by document."""
        segmented = self._evidence.in_segments
        documents = [each.reading.attachment_id for each in segmented]
        if documents != list(self._rows):
            _clear(self._coverages)
            self._rows = {each: self._new_row() for each in documents}
        partial = [each for each in segmented if each.num_read < len(each.segments)]
        for row, coverage in zip(self._rows.values(), segmented, strict=True):
            row.show_coverage(coverage, names_document=self._evidence.names_documents)
            is_offering = coverage in partial[-1:] and not self._evidence.is_running
            row.offer(segmented if is_offering else ())
        since = self._evidence.num_read_since
        was = "was" if since == 1 else "were"
        self._since.setText(f"This answer does not know {since:,} of them, which {was} read later.")
        self._since.setVisible(since > 0)

    def _new_row(self) -> CoverageRow:
        row = CoverageRow()
        row.passage_requested.connect(self.passage_requested)
        row.continue_requested.connect(self.continue_requested)
        row.answer_now_requested.connect(self.answer_now_requested)
        self._coverages.addWidget(row)
        return row


def _sources_of(evidence: Evidence) -> tuple[object, ...]:
    """Return what is shown of sources."""
    return evidence.passages, evidence.found_nothing, evidence.names_documents


def _counted(passages: Sequence[ShownPassage], noun: str) -> str:
    return f"{len(passages):,} {noun}{'' if len(passages) == 1 else 's'}"


def _clear(column: QVBoxLayout) -> None:
    while (item := column.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
