"""What is shown of the sources of an answer, and of what was read for it, as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.documents.places import Place, Places
from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind

_FIRST_CHARS = 160
_MOST_NAMED = 3
"""So many documents without a passage are named beside passages of others."""
_LEADING_HEADINGS = re.compile(r"^(?:#{1,6}[ \t][^\n]*\s+)+(?=\S)")
_LEADING_SIGNS = re.compile(r"^(?:[#>|*+-]+[ \t]+|\d+[.)][ \t]+)+")
_TABLE_SIGNS = re.compile(r"[ \t]*\|[ \t|:-]*")


@dataclass(frozen=True)
class DocumentText:
    """A document that answers rest on.

    Attributes:
        title: its name.
        text: all of it.
        places: its pages and headings.
    """

    title: str
    text: str
    places: Places


@dataclass(frozen=True)
class ShownPassage:
    """A passage that an answer may rest on.

    Attributes:
        source: the passage.
        title: the name of its document.
        place: where it begins.
        words: its first words, in one line.
    """

    source: Source
    title: str
    place: Place
    words: str


@dataclass(frozen=True)
class ShownSegment:
    """A segment of a document that is read for a question, or a passage that was looked at.

    Attributes:
        segment: how far it has come, and the note on it.
        place: where it begins.
    """

    segment: ReadSegment
    place: Place


@dataclass(frozen=True)
class Coverage:
    """Which segments of a document were read for a question.

    Attributes:
        reading: the reading of the document.
        title: the name of the document.
        segments: in the order of the text.
    """

    reading: Reading
    title: str
    segments: tuple[ShownSegment, ...]

    @property
    def num_read(self) -> int:
        """How many segments were read."""
        return sum(each.segment.state is SegmentState.READ for each in self.segments)

    @property
    def num_failed(self) -> int:
        """How many could not be read."""
        return sum(each.segment.state is SegmentState.FAILED for each in self.segments)

    @property
    def is_unfinished(self) -> bool:
        """Whether there are segments left to read, and the answer does not go without them."""
        return self.reading.way is DocumentWay.SEGMENTS and not self.reading.is_done


@dataclass(frozen=True)
class Evidence:
    """What is shown under an answer.

    Attributes:
        passages: its sources, as they are stored.
        coverages: what was read for its question, document by document.
        is_running: whether that is still being done.
        num_known: how many segments had been read when it was answered; None where it was not, or not to its
            end. More may have been read since, for another answer.
        names_documents: whether there are several documents, so that each passage is to name its own.
        is_by_model: whether a model wrote the answer; else that itself says that nothing was found.
    """

    passages: tuple[ShownPassage, ...] = ()
    coverages: tuple[Coverage, ...] = ()
    is_running: bool = False
    num_known: int | None = None
    names_documents: bool = False
    is_by_model: bool = True

    @property
    def in_segments(self) -> tuple[Coverage, ...]:
        """What was read in segments, document by document; nothing where that was for another answer only.

        A reading that a damaged store has lost the segments of says nothing of them.
        """
        segmented = (
            each for each in self.coverages if each.reading.way is DocumentWay.SEGMENTS and each.segments
        )
        return () if self.num_known == 0 else tuple(segmented)

    @property
    def num_read_since(self) -> int:
        """How many segments have been read since the question was answered this way."""
        num_read = sum(each.num_read for each in self.in_segments)
        return 0 if self.num_known is None else max(0, num_read - self.num_known)

    @property
    def found_nothing(self) -> tuple[str, ...]:
        """The titles of the documents that were looked up and have nothing that fits the question.

        None where the answer says so itself, nor beside passages of others where many were.
        """
        if not self.is_by_model:
            return ()
        looked_up = [each for each in self.coverages if each.reading.way is DocumentWay.LOOK_UP]
        if len(looked_up) > _MOST_NAMED and any(each.segments for each in looked_up):
            return ()
        known = {each.source.attachment_id for each in self.passages if each.source.number}
        return tuple(
            each.title
            for each in looked_up
            if each.reading.is_done and not each.segments and each.reading.attachment_id not in known
        )

    def uncited(self, kind: SourceKind) -> tuple[ShownPassage, ...]:
        """Return the passages that the answer came by in one way and does not cite, by number."""
        return tuple(each for each in self.of_kind(kind) if not each.source.is_cited)

    @property
    def cited(self) -> tuple[ShownPassage, ...]:
        """The passages that the answer cites, by number."""
        cited = [each for each in self.passages if each.source.is_cited]
        return tuple(sorted(cited, key=lambda each: each.source.number))

    def of_kind(self, kind: SourceKind) -> tuple[ShownPassage, ...]:
        """Return the passages that the answer came by in one way; of ATTENDED ones those with most first."""
        found = [each for each in self.passages if each.source.kind is kind]
        if kind is SourceKind.ATTENDED:
            found.sort(key=lambda each: -(each.source.share or 0.0))
        return tuple(found)

    @property
    def by_number(self) -> Mapping[int, ShownPassage]:
        """What `[3]` in the answer stands for."""
        return {each.source.number: each for each in self.passages if each.source.number}


NO_EVIDENCE = Evidence()
"""Of an answer that has none."""


def evidence_of(
    sources: Sequence[Source],
    readings: Sequence[tuple[Reading, Sequence[ReadSegment]]],
    documents: Mapping[int, DocumentText],
    *,
    is_running: bool = False,
    num_known: int | None = None,
    names_documents: bool = False,
    is_by_model: bool = True,
) -> Evidence:
    """Return what is shown under an answer; what belongs to documents that are gone is left out.

    Args:
        sources: of the answer.
        readings: of its question, each with its segments.
        documents: by the ids of their attachments.
        is_running: whether segments are being read.
        num_known: how many segments the answer was written from, see `Evidence`.
        names_documents: whether the conversation has several documents.
        is_by_model: whether a model wrote the answer.
    """
    passages = (
        _shown_passage(each, documents[each.attachment_id])
        for each in sources
        if each.attachment_id in documents
    )
    coverages = (
        _coverage(reading, segments, documents[reading.attachment_id])
        for reading, segments in readings
        if reading.attachment_id in documents
    )
    return Evidence(tuple(passages), tuple(coverages), is_running, num_known, names_documents, is_by_model)


def first_words(text: str, start: int, stop: int) -> str:
    """Return the first words of a passage in one line, without the signs that make lists and tables.

    Nor with the headings that it begins with, unless there is nothing else: its place has the last of them.
    """
    words = text[start : min(stop, start + 3 * _FIRST_CHARS)].strip()
    words = _LEADING_HEADINGS.sub("", words)
    words = " ".join(_TABLE_SIGNS.sub(" ", _LEADING_SIGNS.sub("", words)).split())
    if len(words) <= _FIRST_CHARS:
        return words
    cut = words[:_FIRST_CHARS]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut[_FIRST_CHARS // 2 :] else cut}…"


def _shown_passage(source: Source, document: DocumentText) -> ShownPassage:
    words = first_words(document.text, source.start, source.stop)
    return ShownPassage(source, document.title, document.places.at(source.start), words)


def _coverage(reading: Reading, segments: Sequence[ReadSegment], document: DocumentText) -> Coverage:
    shown = tuple(ShownSegment(each, document.places.at(each.start)) for each in segments)
    return Coverage(reading, document.title, shown)
