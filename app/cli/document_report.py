"""What an answer in the terminal rests on: how much of each document was read, and its passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.documents.document import Document
from app.documents.places import Places
from app.documents.ways import DocumentWay
from app.reading.coverage import coverage_sentence
from app.reading.records import Source, SourceKind

if TYPE_CHECKING:
    from app.single_question import SingleQuestion

_MOST_CHARACTERS = 80


_MOST_NAMED = 3
"""So many documents that were looked up in vain are named."""


@dataclass(frozen=True)
class PassageReport:
    """A passage that an answer may rest on.

    Attributes:
        number: what the answer cites it by.
        place: where it begins, such as `p. 12, 3.2 Methods`; empty where nothing is known of that.
        start: its first character in the document's text.
        stop: the one behind its last.
        kind: `noted` where a note was taken on it, `looked_at` where it was looked up.
        is_cited: whether the answer cites it.
        text: its words.
    """

    number: int
    place: str
    start: int
    stop: int
    kind: str
    is_cited: bool
    text: str

    @property
    def line(self) -> str:
        """It in a line, such as `[3] (p. 12, 3.2 Methods) The first words…`."""
        place = f"({self.place}) " if self.place else ""
        words = " ".join(self.text.split())
        if len(words) > _MOST_CHARACTERS:
            words = f"{words[: _MOST_CHARACTERS - 1].rstrip()}…"
        return f"[{self.number}] {place}{words}"


@dataclass(frozen=True)
class DocumentReport:
    """What was read of a document that was not read whole.

    Attributes:
        title: what it is called.
        way: `segments` or `look_up`.
        num_segments: how many segments or passages there are.
        num_read: how many of them were read.
        num_failed: how many could not be read.
        errors: why not, each reason once.
        passages: those that the answer may rest on.
    """

    title: str
    way: str
    num_segments: int
    num_read: int
    num_failed: int
    errors: tuple[str, ...]
    passages: tuple[PassageReport, ...]

    @property
    def is_in_vain(self) -> bool:
        """Whether it was looked up and has nothing that fits the question."""
        return self.way == DocumentWay.LOOK_UP.value and not self.num_read

    @property
    def lines(self) -> Iterator[str]:
        """What people are told: the coverage, and the passages that are cited; all where none is."""
        if self.way == DocumentWay.SEGMENTS.value:
            coverage = coverage_sentence(self.num_read, self.num_failed, self.num_segments)
        else:
            count = "1 passage" if self.num_read == 1 else f"{self.num_read:,} passages"
            coverage = f"Looked at {count}." if self.num_read else "No passage has the words of the question."
        yield " ".join([f"{self.title}: {coverage}", *self.errors])
        cited = [passage for passage in self.passages if passage.is_cited]
        looked_at = [each for each in self.passages if each.kind == SourceKind.LOOKED_AT.value]
        for passage in cited or looked_at:
            yield f"  {passage.line}"


def report_lines(reports: Sequence[DocumentReport]) -> Iterator[str]:
    """Yield what people are told of all documents; many that were looked up in vain have one line."""
    in_vain = [each for each in reports if each.is_in_vain]
    is_many = len(in_vain) > _MOST_NAMED
    for each in reports:
        if not is_many or not each.is_in_vain:
            yield from each.lines
    if is_many:
        yield f"{len(in_vain):,} documents: No passage has the words of the question."


def document_reports(question: SingleQuestion, documents: Sequence[Document]) -> tuple[DocumentReport, ...]:
    """Return what was read of the documents of a question that were not read whole."""
    sources = question.sources
    return tuple(
        _report(question, index, documents[index], [each for each in sources if each.attachment_id == index])
        for index in question.readings
    )


def _report(
    question: SingleQuestion, index: int, document: Document, sources: Sequence[Source]
) -> DocumentReport:
    reading, places = question.readings[index], Places.of(document.text, document.kind, document.page_starts)
    errors = dict.fromkeys(segment.error for segment in question.segments(index) if segment.error)
    return DocumentReport(
        document.title,
        reading.way.value,
        reading.num_segments,
        reading.num_read,
        reading.num_failed,
        tuple(errors),
        tuple(
            PassageReport(
                each.number,
                places.at(each.start).words,
                each.start,
                each.stop,
                each.kind.value,
                each.is_cited,
                document.text[each.start : each.stop],
            )
            for each in sources
        ),
    )
