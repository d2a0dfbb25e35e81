"""Which turns a trim releases, and what is to stand for them, for any context."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from app.document_prompt import without_documents
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import LedgerRows, Summary, SummaryState
from app.ledger.run import Run, find_runs, in_a_row, run_text, text_of
from app.ledger.summary_request import most_summary_tokens
from app.ledger.trimming import TokenMeasure, TrimPlan, dropped, filler, plan_trim, release_order
from engine.context_usage import SpanUsage
from engine.kv.page_map import SpanKind
from tests.app.ledger.paths import OWLS, answer, question, rows, summary, turns

READ, SUMMARIZED, DROPPED = SpanState.IN_CONTEXT, SpanState.SUMMARIZED, SpanState.DROPPED


def characters(context: ConversationContext) -> int:
    return sum(len(message.content) for message in context.messages)


def run_characters(context: ConversationContext, run: Run) -> int:
    text = run_text(context, run)
    return sum(len(message.content) for message in text.messages[text.first :])


BY_CHARACTER = TokenMeasure(characters, run_characters, len)


def conversation(lengths: Sequence[int], stored: LedgerRows, *, waits: bool = True) -> ConversationContext:
    """Return turns of so many characters, the last of which waits for its answer."""
    path = [
        message
        for turn, length in enumerate(lengths)
        for message in (
            question(2 * turn + 1, "q" * (length - length // 2)),
            answer(2 * turn + 2, "a" * (length // 2)),
        )
    ]
    return ConversationContext.of(path[:-1] if waits else path, stored)


def keys(*numbers: int) -> tuple[str, ...]:
    """Return the keys of the messages of turns, numbered from 0."""
    return tuple(f"m{2 * number + place}" for number in numbers for place in (1, 2))


def heat(turn: int, share: float, num_tokens: int = 100) -> SpanUsage:
    return SpanUsage(SpanKind.USER, keys(turn)[0], "", num_tokens, 0, share)


def states(context: ConversationContext) -> list[SpanState]:
    return [turn.state for turn in context.turns]


def trim(
    context: ConversationContext, most: int, *, summarizes: bool = True, enough: int = 0
) -> TrimPlan | None:
    order = release_order(context)
    return plan_trim(context, order, BY_CHARACTER, most, summarizes=summarizes, enough_tokens=enough)


def test_the_oldest_go_first_and_the_last_pinned_summarized_and_dropped_not_at_all() -> None:
    stored = rows(summary(1, *keys(0)), dropped=keys(2), pinned=[keys(4)[1]])
    context = conversation([10] * 8, stored)
    assert release_order(context) == [1, 3, 5, 6]
    assert release_order(conversation([10] * 3, LedgerRows(), waits=False)) == [0, 1]


def test_a_turn_with_a_pinned_document_stays() -> None:
    path = [question(1, "Look.", OWLS), answer(2), question(3), answer(4), question(5)]
    assert release_order(ConversationContext.of(path, rows(pinned=["a7"]))) == [1]


def test_what_gets_twice_the_average_attention_goes_last_by_token_and_not_by_turn() -> None:
    context = conversation([10] * 5, LedgerRows())
    assert release_order(context, [heat(0, 0.5), heat(1, 0.1), heat(2, 0.1), heat(3, 0.1)]) == [1, 2, 3, 0]
    # As much attention to five times the text is no more for each token.
    long = [heat(0, 0.5, 500), heat(1, 0.1), heat(2, 0.1), heat(3, 0.1)]
    assert release_order(context, long) == [0, 1, 2, 3]
    # Attention to the question that is being answered is none to what may leave.
    assert release_order(context, [heat(0, 0.3), heat(1, 0.1), heat(2, 0.0), heat(4, 0.9)]) == [1, 2, 3, 0]


def test_turns_in_a_row_make_a_run_with_the_summaries_between_and_beside_them() -> None:
    stored = rows(summary(1, *keys(0)), summary(2, *keys(2)), dropped=keys(3), pinned=[keys(5)[0]])
    context = conversation([10] * 9, stored)
    first, second = find_runs(context, {1, 4, 6})
    assert (first.turns, first.covers) == ((0, 1, 2, 4), keys(0, 1, 2, 4))
    assert first.merged == {"s1", "s2"}
    assert (second.turns, second.merged) == ((6,), frozenset())
    assert find_runs(context, set()) == ()


def test_a_plan_counts_the_turns_under_a_summary_that_it_takes_in() -> None:
    context = conversation([100] * 6, rows(summary(1, *keys(0, 1))))
    plan = trim(context, 300)
    assert plan is not None and (plan.released, plan.num_turns) == ({2, 3}, 4)
    left_out = trim(context, 300, summarizes=False)
    assert left_out is not None and left_out.num_turns == len(left_out.released)


def test_a_summary_that_stands_for_a_turn_elsewhere_too_is_left_alone() -> None:
    stored = rows(summary(1, *keys(0, 3)), pinned=[keys(2)[0]])
    (run,) = find_runs(conversation([10] * 5, stored), {1})
    assert (run.turns, run.merged) == ((1,), frozenset())


def test_the_text_of_a_run_ends_with_the_summaries_behind_it_and_no_word_more() -> None:
    stored = rows(summary(1, *keys(0), text="Before."), summary(2, *keys(2), text="Behind."))
    context = conversation([10] * 4, stored)
    (run,) = find_runs(context, {1})
    text = run_text(context, run)
    contents = [message.content for message in text.messages[text.first :]]
    assert "Before." in contents[0] and contents[0].endswith("qqqqq")
    assert contents[1] == "aaaaa"
    assert "Behind." in contents[2] and "q" not in contents[2].split("Behind.")[1].replace("question", "")
    assert [each.key for each in text.messages[-1].documents] == ["s2"]


def test_what_is_chosen_by_hand_is_one_run_with_the_summaries_that_are_chosen_beside_it() -> None:
    stored = rows(summary(1, *keys(0, 1)), summary(2, *keys(5)), dropped=keys(3))
    context = conversation([10] * 8, stored)
    assert in_a_row(context, ["m5", "s1"]) == [("s1", "m5")]
    assert in_a_row(context, ["m5", "m9", "s2"]) == [("m5", "m9", "s2")]  # what is left out is in between
    assert in_a_row(context, ["m9", "m13"]) == [("m9",), ("m13",)]  # a summary that is not chosen is
    assert in_a_row(context, ["s1"]) == []
    text = text_of(context, ["s1", "m5"])
    assert (text.covers, text.num_turns) == (keys(0, 1, 2), 3)
    assert [each.key for each in text.messages[text.first].documents] == ["s1"]


def test_a_summary_of_turns_that_are_apart_is_taken_in_with_all_that_is_between_and_else_not_at_all() -> None:
    context = conversation([10] * 5, rows(summary(1, *keys(0, 2))))
    assert in_a_row(context, ["s1", "m7"]) == [("m7",)]
    assert in_a_row(context, ["s1", "m3", "m7"]) == [("s1", "m3", "m7")]
    assert text_of(context, ["s1", "m3", "m7"]).covers == keys(0, 1, 2, 3)


def test_a_summary_that_waits_for_the_next_question_is_part_of_what_is_summarized_with_it() -> None:
    context = conversation([10] * 3, rows(summary(1, *keys(2), text="It waits.")), waits=False)
    text = text_of(context, ["m3", "s1"])
    assert [message.content for message in text.messages[text.first : -1]] == ["qqqqq", "aaaaa"]
    assert "It waits." in text.messages[-1].content
    assert "It waits." not in text_of(context, ["m3"]).messages[-1].content


def test_a_summary_that_stays_is_not_summarized_again_with_the_turn_that_it_stands_before() -> None:
    stored = rows(summary(1, *keys(0, 2), text="It stays."), pinned=[keys(1)[0]])
    context = conversation([10] * 5, stored)
    (run,) = find_runs(context, {3})
    assert "It stays." in next(each for each in context.messages if each.key == keys(3)[0]).content
    text = run_text(context, run)
    assert [message.content for message in text.messages[text.first :]] == ["qqqqq", "aaaaa"]


def test_a_summary_in_the_place_of_a_document_is_summarized_with_its_turn() -> None:
    stored = rows(summary(1, "a7", text="They hunt by ear."), summary(2, "m1", "m2", text="It stays."))
    path = [*turns(1), question(3, "And?", OWLS), answer(4), *turns(3)[4:]]
    context = ConversationContext.of(path, stored)
    for text in (run_text(context, find_runs(context, {1})[0]), text_of(context, ["m4"])):
        content = text.messages[text.first].content
        assert "They hunt by ear." in content and content.endswith("And?")
    assert "It stays." not in content  # by hand it is not taken in


def test_a_trim_stops_as_soon_as_enough_is_released() -> None:
    context = conversation([100] * 10, LedgerRows())
    plan = trim(context, 600, summarizes=False)
    assert plan is not None
    assert plan.released == {0, 1, 2, 3}  # 950 characters, as the last turn has only its question
    assert states(plan.context) == [DROPPED] * 4 + [READ] * 6
    assert plan.num_tokens == 550
    assert not plan.runs


def test_summaries_count_to_what_is_left_at_their_full_length() -> None:
    context = conversation([1000] * 10, LedgerRows())
    plan = trim(context, 6000)
    assert plan is not None
    (run,) = plan.runs
    frame = len("Summary of the earlier conversation:\n\n\n\n(End of the summary.)\n\n")
    assert plan.released == {0, 1, 2, 3, 4}  # with four of them it would be 5,500 and 600 and the frame
    assert plan.num_tokens == pytest.approx(4500 + 750 + frame, abs=5)
    assert states(plan.context) == [SUMMARIZED] * 5 + [READ] * 5
    assert run.covers == keys(0, 1, 2, 3, 4)


def test_nothing_is_planned_where_nothing_may_leave() -> None:
    assert trim(conversation([1000], LedgerRows()), 10) is None
    assert trim(conversation([1000, 1000], rows(pinned=[keys(0)[0]])), 10) is None


def test_turns_that_are_as_short_as_a_summary_stay() -> None:
    context = conversation([8, 8, 400, 10], rows(pinned=keys(2)))
    assert trim(context, 200, summarizes=True) is None
    dropping = trim(context, 200, summarizes=False)
    assert dropping is not None and dropping.released == {0, 1}


def test_a_prepared_summary_is_used_where_it_leads_near_enough_and_written_anew_where_not() -> None:
    context = conversation([100] * 10, rows(prepared(7, 0, 1, 2)))
    near = trim(context, 600, enough=760)
    assert near is not None
    assert near.released == {0, 1, 2} and near.unwritten == ()
    assert near.change.summaries == ((7, SummaryState.USED),)
    assert near.context.messages[0].content.startswith("Summary of the earlier conversation:\n\nSummary 7")
    far = trim(context, 500, enough=600)
    assert far is not None
    assert len(far.released) > 3 and len(far.unwritten) == 1 and not far.change.summaries


def test_a_prepared_summary_that_covers_just_what_is_released_is_used() -> None:
    context = conversation([100] * 10, rows(prepared(7, 0, 1, 2, 3)))
    plan = trim(context, 700, enough=0)
    assert plan is not None
    assert plan.change.summaries == ((7, SummaryState.USED),)


@pytest.mark.parametrize(
    "stored",
    [
        rows(),
        rows(dropped=keys(1)),
        rows(pinned=[keys(1)[0]]),
        rows(summary(2, *keys(2, 3))),
        rows(summary(2, *keys(3))),
    ],
    ids=["fits", "dropped since", "pinned since", "half of a summary", "beside a summary"],
)
def test_a_prepared_summary_fits_only_what_it_was_written_for(stored: LedgerRows) -> None:
    stored = dataclasses.replace(stored, summaries=(*stored.summaries, prepared(7, 0, 1, 2)))
    plan = trim(conversation([1000] * 10, stored), 100_000, enough=100_000)
    assert plan is not None
    is_used = plan.change.summaries == ((7, SummaryState.USED),)
    assert is_used == (len(stored.marks) == 0 and len(stored.summaries) == 1)


def test_of_several_prepared_summaries_those_are_used_that_fit() -> None:
    stored = rows(prepared(6, 0, 1), prepared(7, 4, 5), prepared(8, 1, 2, 3), pinned=[keys(3)[0]])
    plan = trim(conversation([1000] * 10, stored), 6000)
    assert plan is not None
    assert plan.released == {0, 1, 4, 5}
    assert plan.change.summaries == ((6, SummaryState.USED), (7, SummaryState.USED))


def prepared(number: int, *numbers: int) -> Summary:
    return summary(number, *keys(*numbers), state=SummaryState.PREPARED)


def test_words_are_made_of_about_as_many_tokens_as_are_wanted() -> None:
    assert len(filler(100, len)) == 100
    assert filler(7, lambda text: len(text.split())).split() == ["word"] * 7
    assert filler(0, len)


def fits(context: ConversationContext, limit: int, *, summarizes: bool = True) -> TrimPlan:
    """Return the trim to 60 % of a context of so many characters, which fits into it."""
    order, most = release_order(context), limit * 6 // 10
    plan = plan_trim(context, order, BY_CHARACTER, most, summarizes=summarizes, limit_tokens=limit)
    assert plan is not None and characters(plan.context) + 16 <= limit
    return plan


def test_summaries_of_far_more_than_the_context_have_15_percent_of_it_together() -> None:
    context = conversation([400] * 60, rows(pinned=[keys(20)[0], keys(40)[0]]))
    plan = fits(context, 2000)
    assert [run.room_tokens for run in plan.unwritten] == [100, 100, 100]
    stand_ins = [each for each in plan.context.rows.summaries if each.id < 0]
    assert [each.num_tokens for each in stand_ins] == [100, 100, 100]
    assert plan.left_out == () and plan.num_turns == len(plan.released) == 57


def test_where_pins_part_more_summaries_than_there_is_room_for_the_oldest_turns_are_left_out() -> None:
    context = conversation([150, 10] * 20 + [10], rows(pinned=[keys(turn)[0] for turn in range(1, 40, 2)]))
    plan = fits(context, 1200)
    gone = [index for run in plan.left_out for index in run.turns]
    assert gone == list(range(0, 2 * len(plan.left_out), 2)) and 0 < len(gone) < 20
    assert [states(plan.context)[index] for index in range(0, 40, 2)] == (
        [DROPPED] * len(gone) + [SUMMARIZED] * (20 - len(gone))
    )
    assert plan.num_turns == 20
    # One summary more would be one too many.
    runs = find_runs(context, plan.released)[: len(gone) - 1]
    fewer = context.changed(dropped(context, [index for run in runs for index in run.turns]))
    rest = [index for index in plan.released if index not in gone[:-1]]
    more = plan_trim(fewer, rest, BY_CHARACTER, 0, summarizes=True)
    assert more is not None and more.num_tokens + 16 > 1200


@pytest.mark.parametrize("summarizes", [True, False])
def test_summaries_from_a_longer_context_are_left_out_where_nothing_else_leads_into_this_one(
    summarizes: bool,
) -> None:
    older, newer = summary(1, *keys(0), text="o" * 300), summary(2, *keys(0, 1), text="n" * 300)
    last = summary(3, *keys(3), text="l" * 80)
    context = conversation([50] * 5, rows(older, newer, last, pinned=[keys(2)[0]]))
    plan = fits(context, 450, summarizes=summarizes)
    # What the newer one took in does not come back with it.
    assert states(plan.context) == [DROPPED, DROPPED, READ, SUMMARIZED, READ]
    assert (plan.released, plan.num_turns) == (frozenset(), 2)


def test_what_is_prepared_for_a_longer_context_is_written_anew() -> None:
    prepared = summary(1, *keys(0, 1, 2), text="p" * 200, state=SummaryState.PREPARED)
    context = conversation([300] * 4, rows(dataclasses.replace(prepared, num_tokens=200)))
    assert fits(context, 2000).unwritten == ()
    (run,) = fits(context, 1000).unwritten
    assert (run.covers, run.room_tokens) == (keys(0, 1, 2), 150)


@st.composite
def contexts(draw: st.DrawFn) -> ConversationContext:
    lengths = draw(st.lists(st.integers(2, 400), min_size=1, max_size=12))
    numbers = st.integers(0, len(lengths) - 1)
    some = st.lists(numbers, max_size=3, unique=True)
    summaries = [
        summary(number, *keys(*range(first, min(first + count, len(lengths)))), state=state)
        for number, (first, count, state) in enumerate(
            draw(st.lists(st.tuples(numbers, st.integers(1, 5), st.sampled_from(SummaryState)), max_size=4)),
            1,
        )
    ]
    stored = rows(*summaries, dropped=keys(*draw(some)), pinned=[keys(each)[0] for each in draw(some)])
    return conversation(lengths, stored, waits=draw(st.booleans()))


@given(contexts(), st.integers(0, 3000), st.booleans())
def test_whole_turns_go_until_it_is_short_enough_or_all_are_gone_that_may(
    context: ConversationContext, most: int, summarizes: bool
) -> None:
    may_go = {
        index
        for index, turn in enumerate(context.turns[:-1])
        if turn.state is READ and not turn.is_pinned and not turn.is_pending
    }
    plan = trim(context, most, summarizes=summarizes)
    if plan is None:
        words = sum(len(message.text) for index in may_go for message in context.turns[index].messages)
        is_short = characters(context) <= most or words < 200 * len(find_runs(context, may_go))
        assert not may_go or (summarizes and is_short)
        return
    after = plan.context
    assert plan.num_tokens < characters(context) or not plan.unwritten
    assert plan.released and plan.released <= may_go
    assert plan.num_tokens == characters(after)
    assert plan.num_tokens <= most or plan.released == may_go
    for index, (turn, now) in enumerate(zip(context.turns, after.turns, strict=True)):
        if index in plan.released:
            assert now.state is (SUMMARIZED if summarizes else DROPPED)
        elif turn.state is not SUMMARIZED:
            assert now.state is turn.state
        else:
            assert now.state is SUMMARIZED
    stand_ins = {each.covers: each for each in after.rows.summaries if each.id < 0}
    assert {run.covers for run in plan.unwritten} == stand_ins.keys()
    for run in plan.unwritten:
        most_tokens = most_summary_tokens(BY_CHARACTER.run(context, run))
        assert len(stand_ins[run.covers].text) <= most_tokens + len("word ")
        assert run.covers == tuple(key for index in run.turns for key in context.turns[index].keys)


@given(contexts(), st.integers(16, 3000))
def test_a_trim_with_summaries_fits_wherever_one_without_them_does(
    context: ConversationContext, limit: int
) -> None:
    order, most = release_order(context), limit * 6 // 10
    without, summarizing = (
        plan_trim(context, order, BY_CHARACTER, most, summarizes=each, limit_tokens=limit)
        for each in (False, True)
    )
    if without is not None and without.num_tokens + 16 <= limit:
        left = characters(context) if summarizing is None else summarizing.num_tokens
        assert left + 16 <= limit or left == characters(context) <= most


@given(contexts(), st.integers(0, 3000))
def test_a_summary_is_written_of_all_that_it_replaces_and_of_nothing_else(
    context: ConversationContext, most: int
) -> None:
    assume(context.turns[-1].is_pending)
    plan = trim(context, most)
    for run in plan.runs if plan is not None else ():
        text = run_text(context, run)
        own = [message for message in text.messages[text.first :] if message.content]
        taken_in = [each.key for message in own for each in message.documents]
        assert sorted(taken_in) == sorted(run.merged)
        words = [without_documents(message.content, message.documents) for message in own]
        released = [context.turns[index] for index in run.turns if context.turns[index].state is READ]
        assert "".join(words) == "".join(each.text for turn in released for each in turn.messages)


@given(contexts(), st.integers(0, 3000), st.integers(0, 500))
def test_the_more_may_stay_the_less_is_dropped(context: ConversationContext, most: int, more: int) -> None:
    strict, mild = trim(context, most, summarizes=False), trim(context, most + more, summarizes=False)
    if strict is not None:
        assert mild is not None and mild.released <= strict.released
        last = max(mild.released)
        fewer = mild.released - {last}
        if fewer:
            less = plan_trim(context, sorted(fewer), BY_CHARACTER, 0, summarizes=False)
            assert less is not None and less.num_tokens > most + more
