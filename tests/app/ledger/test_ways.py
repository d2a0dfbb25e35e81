"""How documents are read for questions, and what the model reads of them then."""

from __future__ import annotations

import dataclasses

import pytest

from app.document_prompt import document_text
from app.documents.ways import DocumentWay
from app.ledger.actions import drop, read_by, restore
from app.ledger.context import DRAFT_ID, ConversationContext, SpanState
from app.ledger.records import ContextChange, ItemMark, LedgerRows, Summary, SummaryState
from app.ledger.run import text_of
from app.reading.records import Reading, Source, SourceKind
from app.store.records import Message
from engine.errors import OctavoError
from engine.events import GenerationStats, StopReason
from engine.kv.page_map import SpanKind
from engine.kv.precision import KVSpec
from tests.app.ledger.paths import BATS, OWLS, answer, question, reading, summary

WHOLE, SEGMENTS, LOOK_UP = DocumentWay.WHOLE, DocumentWay.SEGMENTS, DocumentWay.LOOK_UP
OWLS_LINE = "(Attached, in parts: Owls.)"
TALK = [question(1, "Look.", OWLS), answer(2), question(3), answer(4), question(5)]


def rows(
    way: DocumentWay | None = SEGMENTS,
    *readings: Reading,
    after: int = 0,
    summaries: tuple[Summary, ...] = (),
) -> LedgerRows:
    mark = ItemMark("a7", way=way, after_reading=after)
    return LedgerRows({} if way is None else {"a7": mark}, summaries, readings)


def contents(context: ConversationContext) -> list[str]:
    return [message.content for message in context.messages]


def context_of(path: list[Message], stored: LedgerRows) -> ConversationContext:
    return ConversationContext.of(path, stored)


@pytest.mark.parametrize("way", [None, WHOLE])
def test_a_document_that_is_read_whole_or_undecided_is_written_whole(way: DocumentWay | None) -> None:
    context = context_of(TALK[:1], rows(way, reading(1, 1)))
    assert contents(context) == [document_text("Owls", "They hunt.") + "\n\nLook."]
    assert context.documents_to_read() == ()
    assert [each.id for each in context.ways.undecided()] == ([7] if way is None else [])


@pytest.mark.parametrize("way", [SEGMENTS, LOOK_UP])
def test_a_document_that_is_not_read_whole_is_a_line_and_then_what_was_read_of_it(way: DocumentWay) -> None:
    stored = rows(way, reading(1, 1, way=way, text="[1] They hunt at night."))
    context = context_of(TALK[:1], stored)
    assert contents(context) == [f"{OWLS_LINE}\n\n[1] They hunt at night.\n\nLook."]
    ranges = [(each.key, each.kind, each.title) for each in context.messages[0].documents]
    assert ranges == [("p7", SpanKind.NOTES, "Owls"), ("r1", SpanKind.NOTES, "Owls")]
    assert context.documents_to_read() == ((OWLS, way),)
    assert context.ways.reading("a7", 1) == stored.readings[0]


def test_the_line_of_a_document_tells_its_pages() -> None:
    book = dataclasses.replace(OWLS, num_pages=1_200)
    line = "(Attached, in parts: Owls, 1,200 pages.)"
    assert contents(context_of([question(1, "Look.", book)], rows())) == [f"{line}\n\nLook."]


def test_what_is_read_half_is_not_written() -> None:
    context = context_of(TALK[:1], rows(SEGMENTS, reading(1, 1, text="")))
    assert contents(context) == [f"{OWLS_LINE}\n\nLook."]
    assert context.documents_to_read() == ((OWLS, SEGMENTS),)


def test_readings_stay_with_the_questions_that_they_were_made_for() -> None:
    stored = rows(SEGMENTS, reading(1, 1), reading(2, 3, way=LOOK_UP), reading(3, 5, way=LOOK_UP))
    context = context_of(TALK, stored)
    assert contents(context) == [
        f"{OWLS_LINE}\n\nNotes 1\n\nLook.",
        "Answer 2",
        "Notes 2\n\nQuestion 3",
        "Answer 4",
        "Notes 3\n\nQuestion 5",
    ]
    # Only on their path.
    edited = context_of([*TALK[:2], question(7)], stored)
    assert contents(edited)[2:] == ["Question 7"]


def test_a_document_that_was_read_in_segments_is_looked_up_for_the_questions_that_follow() -> None:
    context = context_of(TALK, rows(SEGMENTS, reading(1, 1)))
    assert [context.way("a7", each) for each in (1, 3, 5, None)] == [SEGMENTS, LOOK_UP, LOOK_UP, LOOK_UP]
    assert context.documents_to_read() == ((OWLS, LOOK_UP),)
    # A question that was edited is read in segments as the one that it was.
    assert context_of([question(7, "Look well.", OWLS)], context.rows).way("a7") is SEGMENTS


def told(stored: LedgerRows, *kinds: SourceKind, num_segments: int | None = None) -> DocumentWay | None:
    sources = tuple(Source(1, OWLS.id, 0, 4, kind) for kind in kinds)
    nothing = GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.END)
    stats = None if num_segments is None else dataclasses.replace(nothing, segments=num_segments)
    answered = dataclasses.replace(answer(2), sources=sources, stats=stats)
    return context_of([TALK[0], answered, *TALK[2:]], stored).ways.told_way("a7")


def test_how_a_document_was_read_is_told_as_the_answer_was_written_whatever_is_chosen_since() -> None:
    read, found = reading(1, 1), reading(1, 1, way=LOOK_UP)
    assert told(rows(SEGMENTS, read), SourceKind.NOTED, num_segments=2) is SEGMENTS
    assert told(rows(WHOLE, read), num_segments=2) is SEGMENTS
    assert told(rows(SEGMENTS, found), SourceKind.LOOKED_AT, num_segments=0) is LOOK_UP
    assert told(rows(SEGMENTS, found), num_segments=0) is LOOK_UP
    assert told(rows(LOOK_UP), SourceKind.ATTENDED, num_segments=0) is WHOLE
    assert told(rows(LOOK_UP), num_segments=0) is WHOLE
    # What was read for another answer to the same question.
    assert told(rows(WHOLE, read), num_segments=0) is WHOLE


def test_how_a_document_is_read_is_told_while_its_answer_is_written() -> None:
    assert told(rows(SEGMENTS, reading(1, 1))) is SEGMENTS
    assert told(rows(WHOLE, reading(1, 1))) is WHOLE
    assert context_of(TALK[:1], rows(LOOK_UP)).ways.told_way("a7") is LOOK_UP
    assert context_of(TALK[:1], rows(None)).ways.told_way("a7") is None


def test_segments_that_were_not_read_to_the_end_are_wanted_again() -> None:
    assert context_of(TALK[:3], rows(SEGMENTS, reading(1, 1, text=""))).way("a7") is SEGMENTS


def test_segments_can_be_chosen_again_for_one_question() -> None:
    before = context_of(TALK, rows(SEGMENTS, reading(1, 1), reading(2, 3, way=LOOK_UP)))
    change = read_by(before, "a7", SEGMENTS)
    assert change == ContextChange((ItemMark("a7", way=SEGMENTS, after_reading=2),))
    again = before.changed(change)
    assert again.way("a7") is SEGMENTS
    read = dataclasses.replace(again.rows, readings=(*again.rows.readings, reading(3, 5)))
    answered = context_of([*TALK, answer(6), question(7)], read)
    assert (answered.way("a7", 5), answered.way("a7")) == (SEGMENTS, LOOK_UP)


def test_the_question_that_waits_does_not_see_what_was_read_by_another_way_than_is_chosen_now() -> None:
    context = context_of(TALK[:3], rows(SEGMENTS, reading(1, 3, way=LOOK_UP)))
    assert contents(context)[2] == "Question 3"
    assert contents(context_of(TALK[:4], context.rows))[2] == "Notes 1\n\nQuestion 3"


def test_what_was_read_of_a_document_is_not_written_beside_all_of_it() -> None:
    context = context_of(TALK[:3], rows(SEGMENTS, reading(1, 1)))
    whole = context.changed(read_by(context, "a7", WHOLE))
    assert contents(whole)[0] == document_text("Owls", "They hunt.") + "\n\nLook."


@pytest.mark.parametrize("way", [SEGMENTS, LOOK_UP])
def test_a_document_whose_turn_was_trimmed_stays_available(way: DocumentWay) -> None:
    covered = summary(1, "m1", "m2")
    summarized = context_of(TALK, rows(way, summaries=(covered,)))
    assert contents(summarized)[0].startswith("Summary of the earlier conversation:")
    assert summarized.documents_to_read() == ((OWLS, way),)
    dropped = summarized.changed(
        ContextChange((ItemMark("m1", is_dropped=True), ItemMark("m2", is_dropped=True)))
    )
    assert dropped.documents_to_read() == ((OWLS, way),)


def test_a_document_that_is_left_out_or_summarized_itself_is_not_read_any_more() -> None:
    context = context_of(TALK, rows(SEGMENTS, reading(1, 1)))
    left_out = context.changed(drop(context, "a7"))
    assert left_out.documents_to_read() == ()
    assert contents(left_out)[0] == "Look."  # neither the line nor the notes
    assert left_out.changed(restore(left_out, "a7")).messages == context.messages
    owls = summary(4, "a7", text="About owls.")
    summarized = context_of(TALK, rows(LOOK_UP, summaries=(owls,)))
    assert summarized.documents_to_read() == ()
    trimmed = summarized.changed(
        ContextChange((ItemMark("m1", is_dropped=True), ItemMark("m2", is_dropped=True)))
    )
    assert trimmed.documents_to_read() == ()


def test_a_document_of_a_trimmed_turn_can_be_left_out_while_it_is_available() -> None:
    covered = summary(1, "m1", "m2")
    context = context_of(TALK, rows(LOOK_UP, summaries=(covered,)))
    left_out = context.changed(drop(context, "a7"))
    assert left_out.documents_to_read() == ()
    assert left_out.rows.summaries == (covered,)
    whole = context_of(TALK, rows(WHOLE, summaries=(covered,)))
    assert drop(whole, "a7") == ContextChange()


def test_the_way_of_a_document_is_told_with_it_and_can_be_taken_back() -> None:
    context = context_of(TALK[:2], rows(WHOLE))
    (before,) = (span for span in context.spans if span.key == "a7")
    assert (before.way, before.state) == (WHOLE, SpanState.IN_CONTEXT)
    change = read_by(context, "a7", LOOK_UP)
    assert context.changed(change).changed(ContextChange((ItemMark("a7", way=WHOLE),))).rows == context.rows
    assert read_by(context.changed(change), "a7", LOOK_UP) == ContextChange()
    assert read_by(context, "a7", None).marks == (ItemMark("a7"),)


def test_what_was_prepared_of_other_words_is_retired_with_a_change_of_the_way() -> None:
    prepared = summary(2, "m1", "m2", state=SummaryState.PREPARED)
    context = context_of(TALK, rows(WHOLE, summaries=(prepared,)))
    assert read_by(context, "a7", SEGMENTS).summaries == ((2, SummaryState.RETIRED),)
    looked_up = context_of(TALK, rows(LOOK_UP, summaries=(prepared,)))
    assert read_by(looked_up, "a7", SEGMENTS).summaries == ()


def test_only_what_is_read_whole_can_be_summarized_alone() -> None:
    with pytest.raises(OctavoError, match="read whole"):
        text_of(context_of(TALK, rows(LOOK_UP)), ["a7"])


def test_a_draft_counts_as_a_question_that_waits() -> None:
    stored = LedgerRows({"a7": ItemMark("a7", way=LOOK_UP), "a8": ItemMark("a8", way=SEGMENTS)})
    context = context_of(TALK[:2], stored)
    assert context.documents_to_read() == ()
    drafted = context.with_draft([BATS])
    assert drafted.documents_to_read() == ((OWLS, LOOK_UP), (BATS, SEGMENTS))
    assert drafted.messages[-1].key == f"m{DRAFT_ID}"
    assert drafted.messages[-1].content == "(Attached, in parts: Bats.)"
    assert drafted.turns[-1].is_pending
    assert context.with_draft([]).messages[-1].content == ""


def test_an_undecided_document_of_a_turn_that_is_not_read_is_left_undecided() -> None:
    context = context_of(TALK, rows(None, summaries=(summary(1, "m1", "m2"),)))
    assert context.ways.undecided() == () == context.documents_to_read()
