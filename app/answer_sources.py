"""The passages that an answer may rest on: what was noted or looked up for it, and what it cites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.document_prompt import place_inside
from app.documents.ways import DocumentWay
from app.ledger.records import attachment_key
from app.reading.keeping import ReadingKeeper
from app.reading.records import Reading, ReadSegment, Source, SourceKind
from app.segments.numbering import numbered
from app.segments.prompts import without_reasoning
from app.sources.citations import CitableNote, citations, cited
from app.sources.evidence import locate
from app.store.records import Attachment
from engine.events import AttendedPassage

_LONGEST_WORD = 40
"""What is longer is no word, as in scripts without blanks."""


@dataclass(frozen=True)
class _Numbered:
    """A note or passage under its number, and the text that it is of."""

    number: int
    reading: Reading
    segment: ReadSegment
    text: str

    @property
    def words(self) -> str:
        """The words of its segment or passage."""
        return self.text[self.segment.start : self.segment.stop]

    def source(self, is_cited: bool) -> Source:
        """Return it as a source: of a note, the sentences that it rests on."""
        start, stop = self.segment.start, self.segment.stop
        kind = SourceKind.LOOKED_AT
        if self.reading.way is DocumentWay.SEGMENTS:
            kind = SourceKind.NOTED
            first, last = locate(self.segment.note, self.words) or (0, stop - start)
            start, stop = start + first, start + last
        return Source(self.number, self.reading.attachment_id, start, stop, kind, is_cited)


def answer_sources(
    answer: str,
    readings: Sequence[Reading],
    earlier: Sequence[Reading],
    texts: Mapping[int, str],
    keeper: ReadingKeeper,
) -> tuple[Source, ...]:
    """Return the sources of an answer in the order of their numbers.

    Args:
        answer: its words.
        readings: what was read of documents for its question: all notes and passages of them are sources.
        earlier: what was read for questions before: only what the answer cites by number is one.
        texts: of the documents, by attachment.
        keeper: knows the segments.
    """
    said = without_reasoning(answer)
    own = _numbered(readings, texts, keeper)
    names = cited(said, [CitableNote(each.number, each.segment.note, each.words) for each in own])
    sources = [each.source(each.number in names) for each in own]
    named = {citation.number for citation in citations(said)} - {each.number for each in own}
    if named:
        before = _numbered(earlier, texts, keeper)
        sources += [each.source(is_cited=True) for each in before if each.number in named]
    return tuple(sorted(sources, key=lambda source: source.number))


def attended_sources(
    attended: Sequence[AttendedPassage], documents: Sequence[Attachment]
) -> tuple[Source, ...]:
    """Return the passages of documents that are read whole to which the model attended, as sources.

    Args:
        attended: as the engine tells them, in what was written of each document.
        documents: those of the conversation.
    """
    by_key = {attachment_key(document.id): document for document in documents}
    found = ((each, by_key[each.key]) for each in attended if each.key in by_key)
    return tuple(
        Source(0, document.id, *_whole_words(document.text, *place), SourceKind.ATTENDED, share=each.share)
        for each, document in found
        if (place := place_inside(document, each.start, each.stop)) is not None
    )


def _whole_words(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return a place in a text with all of the words at its ends."""
    before, behind = text[max(0, start - _LONGEST_WORD) : start], text[stop : stop + _LONGEST_WORD]
    if text[start : start + 1].strip():
        start -= len(before) - max(
            (at + 1 for at, each in enumerate(before) if each.isspace()), default=len(before)
        )
    if text[stop - 1 : stop].strip():
        stop += next((at for at, each in enumerate(behind) if each.isspace()), 0)
    return start, stop


def last_number(readings: Sequence[Reading], keeper: ReadingKeeper) -> int:
    """Return the largest number in use in readings, 0 where there is none."""
    notes = (numbered(each, keeper.reading_segments(each.id)) for each in readings)
    return max((number for each in notes for number, _ in each), default=0)


def _numbered(
    readings: Sequence[Reading], texts: Mapping[int, str], keeper: ReadingKeeper
) -> list[_Numbered]:
    return [
        _Numbered(number, reading, segment, texts[reading.attachment_id])
        for reading in readings
        if reading.attachment_id in texts
        for number, segment in numbered(reading, keeper.reading_segments(reading.id))
    ]
