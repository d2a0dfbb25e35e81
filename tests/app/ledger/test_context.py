"""What the model reads of a path, by what is stored of its context."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.document_prompt import document_text
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import ContextChange, ItemMark, LedgerRows, Summary, SummaryState
from app.store.records import Message
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage
from engine.turns import turn_starts
from tests.app.ledger.paths import BATS, OWLS, answer, question, rows, summary, turns

EARLIER = "Summary of the earlier conversation:\n\n{}\n\n(End of the summary.)\n\n"


def contents(context: ConversationContext) -> list[str]:
    return [message.content for message in context.messages]


def states(context: ConversationContext) -> list[SpanState]:
    return [turn.state for turn in context.turns]


def passages(message: ChatMessage) -> list[tuple[SpanKind, str, str, str]]:
    return [
        (each.kind, each.key, each.title, message.content[each.start : each.stop])
        for each in message.documents
    ]


READ, SUMMARIZED, DROPPED = SpanState.IN_CONTEXT, SpanState.SUMMARIZED, SpanState.DROPPED


def test_without_marks_and_summaries_all_is_read_with_keys() -> None:
    path = [question(1, "Look.", OWLS), answer(2), question(3)]
    context = ConversationContext.of(path, LedgerRows())
    assert [message.key for message in context.messages] == ["m1", "m2", "m3"]
    assert [message.role for message in context.messages] == ["user", "assistant", "user"]
    owls = document_text("Owls", "They hunt.")
    assert contents(context) == [f"{owls}\n\nLook.", "Answer 2", "Question 3"]
    assert passages(context.messages[0]) == [(SpanKind.DOCUMENT, "a7", "Owls", owls)]
    assert states(context) == [READ, READ]
    assert context.left_out_turns == 0


def test_messages_without_a_word_are_no_part_of_it() -> None:
    path = [question(1), answer(2, ""), question(3), answer(4)]
    context = ConversationContext.of(path, LedgerRows())
    assert [message.key for message in context.messages] == ["m1", "m3", "m4"]
    assert [turn.keys for turn in context.turns] == [("m1",), ("m3", "m4")]


def test_a_question_that_was_never_answered_is_a_turn_without_an_answer() -> None:
    path = [*turns(1), question(3), answer(4, ""), question(5), question(6)]
    context = ConversationContext.of(path, rows(summary(1, "m1", "m2", "m3"), dropped=["m5", "m6"]))
    assert [turn.keys for turn in context.turns] == [("m1", "m2"), ("m3",), ("m5",), ("m6",)]
    assert [turn.is_pending for turn in context.turns] == [False, False, False, True]
    assert states(context) == [SUMMARIZED, SUMMARIZED, DROPPED, READ]
    assert contents(context) == [EARLIER.format("Summary 1") + "Question 6"]


def test_a_summary_stands_at_the_head_of_the_turn_behind_what_it_stands_for() -> None:
    path = [*turns(2), question(5, "Look.", OWLS), answer(6)]
    context = ConversationContext.of(path, rows(summary(3, "m1", "m2", "m3", "m4", text=" Both.\n")))
    owls = document_text("Owls", "They hunt.")
    assert contents(context) == [EARLIER.format("Both.") + owls + "\n\nLook.", "Answer 6"]
    assert passages(context.messages[0]) == [
        (SpanKind.SUMMARY, "s3", "Summary of 2 turns", EARLIER.format("Both.").strip()),
        (SpanKind.DOCUMENT, "a7", "Owls", owls),
    ]
    assert states(context) == [SUMMARIZED, SUMMARIZED, READ]
    assert context.turns[0].summary == context.rows.summaries[0]
    assert context.left_out_turns == 2


def test_several_summaries_stand_in_order_and_dropped_turns_leave_nothing() -> None:
    context = ConversationContext.of(
        turns(5), rows(summary(4, "m5", "m6"), summary(9, "m1", "m2"), dropped=["m3", "m4"])
    )
    assert contents(context) == [
        EARLIER.format("Summary 9") + EARLIER.format("Summary 4") + "Question 7",
        "Answer 8",
        "Question 9",
        "Answer 10",
    ]
    assert states(context) == [SUMMARIZED, DROPPED, SUMMARIZED, READ, READ]


def test_a_summary_around_a_turn_that_is_kept_stands_behind_it() -> None:
    context = ConversationContext.of(turns(4), rows(summary(1, "m1", "m2", "m5", "m6")))
    assert contents(context)[:3] == ["Question 3", "Answer 4", EARLIER.format("Summary 1") + "Question 7"]


def test_a_summary_of_all_turns_waits_for_the_next_question() -> None:
    stored = rows(summary(1, "m3", "m4"))
    context = ConversationContext.of(turns(2), stored)
    assert contents(context) == ["Question 1", "Answer 2"]
    further = ConversationContext.of([*turns(2), question(5, "Now?")], stored)
    assert contents(further) == ["Question 1", "Answer 2", EARLIER.format("Summary 1") + "Now?"]


def test_the_turn_that_waits_for_its_answer_is_whole_and_the_last_one_that_has_it_may_go() -> None:
    everything = rows(summary(1, "m3"), dropped=["m1", "m2", "m3"])
    context = ConversationContext.of([*turns(1), question(3)], everything)
    assert contents(context) == ["Question 3"]
    assert [turn.is_pending for turn in context.turns] == [False, True]
    over = ConversationContext.of(turns(1), everything)
    assert over.messages == () and [turn.is_pending for turn in over.turns] == [False]


def test_half_a_turn_is_neither_dropped_nor_summarized() -> None:
    path = [question(1), answer(2), question(3), answer(9), question(5)]
    for stored in (rows(dropped=["m3", "m4"]), rows(summary(1, "m1", "m2", "m3"))):
        assert states(ConversationContext.of(path, stored)) == [READ, READ, READ]


def test_an_edited_turn_makes_a_summary_stale_and_going_back_makes_it_valid_again() -> None:
    stored = rows(summary(1, "m1", "m2"), summary(2, "m1", "m2", "m3", "m4"))
    former = ConversationContext.of(turns(3), stored)
    edited = ConversationContext.of([*turns(1), question(7), answer(8), question(9)], stored)
    assert contents(former)[0] == EARLIER.format("Summary 2") + "Question 5"
    assert contents(edited)[0] == EARLIER.format("Summary 1") + "Question 7"


def test_of_equal_summaries_the_newest_applies_and_those_that_are_not_used_do_not() -> None:
    covers = ("m1", "m2")
    stored = rows(
        summary(1, *covers),
        summary(2, *covers),
        summary(3, *covers, state=SummaryState.RETIRED),
        summary(4, *covers, "m3", "m4", state=SummaryState.PREPARED),
    )
    assert contents(ConversationContext.of(turns(2), stored))[0] == EARLIER.format("Summary 2") + "Question 3"


def test_a_summary_of_documents_stands_in_the_place_of_the_first() -> None:
    path = [question(1, "Look.", OWLS, BATS), answer(2)]
    context = ConversationContext.of(path, rows(summary(3, "a7")))
    bats = document_text("Bats", "They hang.")
    written = "Summary of the document Owls:\n\nSummary 3\n\n(End of the summary.)"
    assert contents(context)[0] == f"{written}\n\n{bats}\n\nLook."
    assert passages(context.messages[0])[0] == (SpanKind.SUMMARY, "s3", "Summary of Owls", written)
    both = ConversationContext.of(path, rows(summary(3, "a7"), summary(4, "a7", "a8")))
    assert contents(both)[0] == (
        "Summary of the documents Owls, Bats:\n\nSummary 4\n\n(End of the summary.)\n\nLook."
    )
    assert [span.state for span in both.spans] == [READ, SUMMARIZED, SUMMARIZED, READ, READ]


@pytest.mark.parametrize("is_pending", [True, False])
def test_a_dropped_document_leaves_its_message_wherever_it_is(is_pending: bool) -> None:
    path = [question(1, "Look.", OWLS, BATS), answer(2)][: 1 if is_pending else 2]
    context = ConversationContext.of(path, rows(dropped=["a7"]))
    assert contents(context)[0] == document_text("Bats", "They hang.") + "\n\nLook."
    assert [span.state for span in context.spans][:2] == [DROPPED, READ]


def test_a_message_of_documents_that_are_all_dropped_says_so() -> None:
    context = ConversationContext.of([question(1, "", OWLS, BATS)], rows(dropped=["a7", "a8"]))
    assert contents(context) == ["(Left out here: Owls, Bats.)"]
    assert context.messages[0].documents == ()


def test_documents_go_with_their_turn() -> None:
    path = [question(1, "Look.", OWLS), answer(2), question(3)]
    context = ConversationContext.of(path, rows(summary(1, "a7"), dropped=["m1", "m2"]))
    assert contents(context) == ["Question 3"]
    assert [(span.key, span.state) for span in context.spans] == [
        ("a7", DROPPED),
        ("m1", DROPPED),
        ("m2", DROPPED),
        ("m3", READ),
    ]


def test_spans_name_all_items_and_what_stands_for_them() -> None:
    third = summary(3, "m1", "m2", "m3", "m4")
    path = [question(1, "", OWLS), answer(2, "<think>Hm.</think>\nBoth\nhunt."), *turns(3)[2:]]
    spans = ConversationContext.of(path, rows(third, pinned=["m5"])).spans
    assert [
        (span.kind, span.key, span.title, span.state, span.summary, span.message_id) for span in spans
    ] == [
        (SpanKind.SUMMARY, "s3", "Summary of 2 turns", READ, third, 1),
        (SpanKind.DOCUMENT, "a7", "Owls", SUMMARIZED, third, 1),
        (SpanKind.USER, "m1", "Owls", SUMMARIZED, third, 1),
        (SpanKind.ASSISTANT, "m2", "Both", SUMMARIZED, third, 2),
        (SpanKind.USER, "m3", "Question 3", SUMMARIZED, third, 3),
        (SpanKind.ASSISTANT, "m4", "Answer 4", SUMMARIZED, third, 4),
        (SpanKind.USER, "m5", "Question 5", READ, None, 5),
        (SpanKind.ASSISTANT, "m6", "Answer 6", READ, None, 6),
    ]
    assert [span.turn for span in spans] == [0, 0, 0, 0, 1, 1, 2, 2]
    assert [span.key for span in spans if span.is_pinned] == ["m5"]


def test_a_turn_is_pinned_by_any_message_or_document_of_it() -> None:
    path = [question(1, "Look.", OWLS), answer(2), *turns(3)[2:]]
    context = ConversationContext.of(path, rows(pinned=["a7", "m4", "m99"]))
    assert [turn.is_pinned for turn in context.turns] == [True, True, False]
    assert context.pinned_keys == {"a7", "m4"}


def test_a_change_can_be_tried_before_it_is_stored() -> None:
    old = summary(1, "m1", "m2")
    context = ConversationContext.of(turns(4), rows(old, pinned=["m7"]))
    change = ContextChange(
        (ItemMark("m7"), ItemMark("m3", is_dropped=True), ItemMark("m4", is_dropped=True)),
        ((1, SummaryState.RETIRED),),
    )
    new = summary(0, "m1", "m2", text="New."), summary(0, "m5", "m6", text="Newer.")
    tried = context.changed(change, *new)
    assert states(tried) == [SUMMARIZED, DROPPED, SUMMARIZED, READ]
    assert contents(tried)[0] == EARLIER.format("New.") + EARLIER.format("Newer.") + "Question 7"
    assert len({each.key for each in tried.messages[0].documents}) == 2
    assert tried.pinned_keys == frozenset()
    assert states(context) == [SUMMARIZED, READ, READ, READ]


# Any path with any rows: what the context promises whatever happened before.


@st.composite
def paths(draw: st.DrawFn) -> list[Message]:
    roles = draw(st.lists(st.booleans(), max_size=12))
    documents = {1: (OWLS,), 5: (BATS,)}
    path = []
    for number, is_user in enumerate(roles, 1):
        text = draw(st.sampled_from(["", f"Words {number}."]))
        path.append(question(number, text, *documents.get(number, ())) if is_user else answer(number, text))
    return path


@st.composite
def any_rows(draw: st.DrawFn) -> LedgerRows:
    keys = [*(f"m{number}" for number in range(1, 15)), "a7", "a8"]
    runs = st.integers(1, 12).flatmap(
        lambda start: st.integers(0, 6).map(lambda more: [f"m{n}" for n in range(start, start + more + 1)])
    )
    covers = st.one_of(
        runs, st.lists(st.sampled_from(keys), max_size=3), st.sampled_from([["a7"], ["a8"], ["a7", "a8"]])
    )
    found = [
        summary(number, *each, state=draw(st.sampled_from(SummaryState)))
        for number, each in enumerate(draw(st.lists(covers, max_size=5)), 1)
    ]
    return rows(*found, dropped=draw(st.lists(st.sampled_from(keys), max_size=8)))


def applied(context: ConversationContext) -> list[Summary]:
    return [
        span.summary for span in context.spans if span.kind is SpanKind.SUMMARY and span.summary is not None
    ]


@given(path=paths(), stored=any_rows())
def test_only_whole_turns_are_read_and_what_is_read_is_what_the_spans_say(
    path: list[Message], stored: LedgerRows
) -> None:
    context = ConversationContext.of(path, stored)
    words = [message for message in path if message.text or message.attachments]
    assert [message for turn in context.turns for message in turn.messages] == words
    roles = [ChatMessage(message.role.value, message.text) for message in words]
    first = [sum(len(turn.messages) for turn in context.turns[:at]) for at in range(len(context.turns))]
    assert [start for start in first if roles[start].role == "user"] == turn_starts(roles)
    read = [key for turn in context.turns if turn.state is READ for key in turn.keys]
    assert [message.key for message in context.messages] == read
    further = ConversationContext.of([*path, question(99)], stored)
    asked = context if context.turns and context.turns[-1].is_pending else further
    in_context = {span.key for span in context.spans if span.state is READ}
    written = {each.key for message in asked.messages for each in message.documents}
    assert in_context == {*read, *written}
    assert all(message.content for message in context.messages)
    if words and words[-1].role.value == "user":
        assert context.turns[-1].state is READ and context.turns[-1].is_pending


@given(path=paths(), stored=any_rows())
def test_summaries_that_apply_are_used_and_of_what_is_on_the_path_and_never_over_another(
    path: list[Message], stored: LedgerRows
) -> None:
    context = ConversationContext.of(path, stored)
    stood_for: list[str] = []
    for each in applied(context):
        assert each.state is SummaryState.USED
        own = [span.key for span in context.spans if span.summary == each and span.key != each.key]
        assert set(each.covers) <= {*own, "a7", "a8"}
        stood_for += own
    assert len(stood_for) == len(set(stood_for))
    assert {span.key for span in context.spans if span.state is SUMMARIZED} == set(stood_for)


@given(path=paths(), stored=any_rows())
def test_a_further_question_changes_nothing_of_what_is_read_before_it(
    path: list[Message], stored: LedgerRows
) -> None:
    context = ConversationContext.of(path, stored)
    further = ConversationContext.of([*path, question(99, "And now?")], stored)
    if context.turns and context.turns[-1].is_pending:
        return
    *before, last = further.messages
    assert tuple(before) == context.messages
    assert states(further) == [*states(context), READ]
    assert {each.kind for each in last.documents} <= {SpanKind.SUMMARY}
    assert last.content.endswith("And now?") and last.key == "m99"


@given(path=paths(), one=any_rows(), other=any_rows())
def test_the_same_key_has_the_same_words_whatever_is_stored(
    path: list[Message], one: LedgerRows, other: LedgerRows
) -> None:
    seen: dict[str, str] = {}
    for stored in (one, dataclasses.replace(one, marks=other.marks)):
        for message in ConversationContext.of(path, stored).messages:
            for each in message.documents:
                written = message.content[each.start : each.stop]
                assert seen.setdefault(each.key, written) == written
            stop = message.documents[-1].stop if message.documents else 0
            own = message.content[stop:].removeprefix("\n\n")
            if own:
                assert seen.setdefault(message.key, own) == own
