"""Notes and passages under the numbers by which an answer cites them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState

_NUMBER = re.compile(r"^\[(\d+)", re.MULTILINE)


@dataclass(frozen=True)
class NumberedNote:
    """A note, one that several were joined to, or a passage, as the model reads it.

    Attributes:
        numbers: what it may be cited by; of a note that several were joined to, all of theirs.
        place: where it stands in the document, empty where that is not known.
        text: its words.
    """

    numbers: tuple[int, ...]
    place: str
    text: str

    @property
    def words(self) -> str:
        """What the model reads, such as `[3] (p. 12, 3.2 Methods) …`."""
        place = f"({self.place}) " if self.place else ""
        return f"[{', '.join(map(str, self.numbers))}] {place}{self.text}"


def counts(segment: ReadSegment, way: DocumentWay) -> bool:
    """Return whether a segment has a number: it was looked at, or has a note."""
    return segment.state is SegmentState.READ and (way is DocumentWay.LOOK_UP or bool(segment.note))


def first_number(reading: Reading) -> int | None:
    """Return the number of the first note or passage of a reading that is done, None where it has none."""
    found = _NUMBER.search(reading.text)
    return int(found.group(1)) if found else None


def numbered(reading: Reading, segments: Sequence[ReadSegment]) -> tuple[tuple[int, ReadSegment], ...]:
    """Return the segments of a reading that is done which have numbers, with these."""
    first = first_number(reading)
    if first is None:
        return ()
    return tuple(enumerate((each for each in segments if counts(each, reading.way)), first))
