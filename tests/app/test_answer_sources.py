"""The sources of answers: by number, by what they say, and from earlier questions."""

from __future__ import annotations

from app.answer_sources import answer_sources, attended_sources, last_number
from app.document_prompt import document_text
from app.documents.ways import DocumentWay
from app.reading.keeping import PassingReadings
from app.reading.records import Reading, ReadSegment, SegmentState, Source, SourceKind
from app.segments.prompts import notes_text, passages_text
from app.store.records import Attachment
from engine.events import AttendedPassage

OWLS = "Of the weather. The mill was built in 1873 by Edith Marlow. Of the harvest."
BATS = "Bats hang in the tower at Harrowgate. They leave it in September."
TEXTS = {7: OWLS, 8: BATS}
NOTED = Source(1, 7, OWLS.index("The mill"), OWLS.index(" Of the harvest"), SourceKind.NOTED, True)


class Kept:
    """Readings of a question about owls in segments, and of an earlier one that looked bats up."""

    def __init__(self) -> None:
        self.keeper = PassingReadings()
        note = ReadSegment(0, len(OWLS), SegmentState.READ, "Edith Marlow built the mill in 1873.")
        self.owls = self.done(7, DocumentWay.SEGMENTS, note, notes_text("Owls", "It was read.", "[1] Edith"))
        passage = ReadSegment(0, 37, SegmentState.READ)
        self.bats = self.done(8, DocumentWay.LOOK_UP, passage, passages_text("Bats", "[5] Bats hang", 5))

    def done(self, attachment_id: int, way: DocumentWay, segment: ReadSegment, text: str) -> Reading:
        begun = self.keeper.begin_reading(1, attachment_id, way, "A model", [segment])
        return self.keeper.finish_reading(begun.id, text)

    def sources(self, answer: str) -> tuple[Source, ...]:
        return answer_sources(answer, [self.owls], [self.bats], TEXTS, self.keeper)


def test_a_note_s_source_is_the_sentence_that_it_rests_on_and_is_cited_by_number() -> None:
    assert Kept().sources("She built it [1].") == (NOTED,)


def test_what_an_answer_says_without_a_number_is_cited_too() -> None:
    assert Kept().sources("It was Edith Marlow, in 1873.")[0].is_cited


def test_what_it_does_not_say_is_a_source_that_is_not_cited() -> None:
    (source,) = Kept().sources("I do not know.")
    assert (source.number, source.is_cited) == (1, False)


def test_numbers_in_the_reasoning_are_no_citation() -> None:
    (source,) = Kept().sources("<think>See [1].</think>I do not know.")
    assert not source.is_cited


def test_what_was_read_for_a_question_before_is_a_source_where_its_number_is_named() -> None:
    own, earlier = Kept().sources("She built it [1], and bats hang there [5].")
    assert own == NOTED
    assert earlier == Source(5, 8, 0, 37, SourceKind.LOOKED_AT, True)


def test_numbers_go_on_behind_the_largest_in_use() -> None:
    kept = Kept()
    assert last_number([kept.owls, kept.bats], kept.keeper) == 5
    assert last_number([], kept.keeper) == 0


def test_what_the_model_attended_to_is_a_source_at_its_place_in_the_text_with_its_share() -> None:
    owls = Attachment(7, "Owls", "owls.txt", "text", f"\n{OWLS}\n", None, None, False)
    start = document_text("Owls", OWLS).index("The mill")
    attended = [
        AttendedPassage("a7", start, start + len("The mill"), 0.4),
        AttendedPassage("a7", 0, 5, 0.1),
        AttendedPassage("a9", 0, 5, 0.1),
    ]
    (source,) = attended_sources(attended, [owls])
    assert owls.text[source.start : source.stop] == "The mill"
    assert (source.number, source.kind, source.share) == (0, SourceKind.ATTENDED, 0.4)


def test_what_was_attended_to_is_shown_with_whole_words() -> None:
    text = "The lighthouse keeper is called Tobias Marsh, and he has two dogs."
    owls = Attachment(7, "Owls", "owls.txt", "text", text, None, None, False)
    shift = len("Document: Owls\n\n")
    start, stop = text.index("eper is"), text.index("rsh, and")
    (source,) = attended_sources([AttendedPassage("a7", start + shift, stop + shift, 0.5)], [owls])
    assert text[source.start : source.stop] == "keeper is called Tobias Marsh,"
    assert (source.kind, source.share, source.number) == (SourceKind.ATTENDED, 0.5, 0)
