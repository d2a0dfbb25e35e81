"""The numbers of notes and passages, found again from what the model reads."""

from __future__ import annotations

import dataclasses

from app.documents.ways import DocumentWay
from app.reading.records import Reading, ReadSegment, SegmentState
from app.segments.numbering import NumberedNote, first_number, numbered
from app.segments.prompts import notes_text

SEGMENTS = (
    ReadSegment(0, 5, SegmentState.READ, "Owls."),
    ReadSegment(5, 9, SegmentState.READ),
    ReadSegment(9, 12, SegmentState.FAILED, error="It broke."),
    ReadSegment(12, 20, SegmentState.READ, "Bats [1]."),
    ReadSegment(20, 30),
)


def reading(notes: str, way: DocumentWay = DocumentWay.SEGMENTS) -> Reading:
    return Reading(1, 2, 3, way, "A model", notes_text("T [1]", "It was read.", notes), 5, 3, 1)


def test_a_note_is_written_with_its_number_and_place() -> None:
    assert NumberedNote((3,), "p. 12, 3.2 Methods", "Owls.").words == "[3] (p. 12, 3.2 Methods) Owls."
    assert NumberedNote((3, 4), "", "Owls.").words == "[3, 4] Owls."


def test_segments_with_a_note_are_numbered_from_the_first_one_that_was_written() -> None:
    done = reading("[7] (p. 1) Owls.\n\n[8] (p. 2) Bats [1].")
    assert first_number(done) == 7
    assert numbered(done, SEGMENTS) == ((7, SEGMENTS[0]), (8, SEGMENTS[3]))
    assert numbered(reading("[7, 8] Owls and bats."), SEGMENTS) == ((7, SEGMENTS[0]), (8, SEGMENTS[3]))


def test_all_passages_that_were_looked_at_are_numbered() -> None:
    done = reading("[2] Owls.", DocumentWay.LOOK_UP)
    read = [segment for segment in SEGMENTS if segment.state is SegmentState.READ]
    assert [segment for _, segment in numbered(done, SEGMENTS)] == read


def test_without_notes_there_are_no_numbers() -> None:
    assert numbered(reading(""), SEGMENTS) == ()
    assert numbered(dataclasses.replace(reading("[1] Owls."), text=""), SEGMENTS) == ()
