"""What a user does with the context of a conversation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ledger.actions import back_to, brought_along, drop, pin, restore, together
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import NO_CHANGE, ContextChange, ItemMark, LedgerRows, SummaryState
from app.store.conversations import ConversationStore
from app.store.records import Message
from tests.app.ledger.paths import BATS, OWLS, answer, question, rows, summary, turns
from tests.app.store.samples import document

READ, SUMMARIZED, DROPPED = SpanState.IN_CONTEXT, SpanState.SUMMARIZED, SpanState.DROPPED
PATH = [question(1, "Look.", OWLS, BATS), answer(2), *turns(3)[2:]]


def context(stored: LedgerRows, path: list[Message] = PATH) -> ConversationContext:
    return ConversationContext.of(path, stored)


def states(found: ConversationContext) -> list[SpanState]:
    return [turn.state for turn in found.turns]


def dropped(*keys: str) -> tuple[ItemMark, ...]:
    return tuple(ItemMark(key, is_dropped=True) for key in keys)


def back(*keys: str) -> tuple[ItemMark, ...]:
    return tuple(ItemMark(key) for key in keys)


@pytest.mark.parametrize("key", ["m3", "m4"])
def test_a_message_is_pinned_dropped_and_restored_with_its_turn(key: str) -> None:
    pinned = pin(context(rows()), key, True)
    assert pinned == ContextChange((ItemMark("m3", is_pinned=True), ItemMark("m4", is_pinned=True)))
    gone = drop(context(rows()), key)
    assert gone == ContextChange(dropped("m3", "m4"))
    changed = context(rows()).changed(gone)
    assert states(changed) == [READ, DROPPED, READ]
    assert restore(changed, key) == ContextChange(back("m3", "m4"))
    assert pin(context(rows()).changed(pinned), key, False) == ContextChange(back("m3", "m4"))


def test_a_question_that_was_never_answered_is_dropped_alone_and_the_last_one_not_at_all() -> None:
    asked = context(rows(), [*turns(1), question(3), question(4)])
    assert drop(asked, "m3") == ContextChange(dropped("m3"))
    assert states(asked.changed(drop(asked, "m3"))) == [READ, DROPPED, READ]
    assert drop(asked, "m4") == NO_CHANGE


def test_a_pin_stays_when_what_is_pinned_is_dropped_and_restored() -> None:
    pinned = context(rows(pinned=["m3", "m4"]))
    gone = pinned.changed(drop(pinned, "m3"))
    assert states(gone)[1] is DROPPED and gone.turns[1].is_pinned
    assert gone.changed(restore(gone, "m3")).rows.marks == pinned.rows.marks


def test_turns_under_the_same_summary_come_back_with_those_that_are_restored() -> None:
    long = context(rows(summary(1, "m1", "m2", "m3", "m4", "m5", "m6"), dropped=["m7", "m8"]), turns(5))
    assert brought_along(long, ["m3"]) == 2
    assert brought_along(long, ["m1", "m3", "m5"]) == 0
    assert brought_along(long, ["s1"]) == 0
    assert brought_along(long, ["m7"]) == 0


def test_a_document_is_pinned_dropped_and_restored_alone() -> None:
    assert pin(context(rows()), "a7", True) == ContextChange((ItemMark("a7", is_pinned=True),))
    assert drop(context(rows()), "a7") == ContextChange(dropped("a7"))
    assert restore(context(rows(dropped=["a7", "a8"])), "a7") == ContextChange(back("a7"))


def test_a_document_of_a_turn_that_is_left_out_comes_back_with_the_turn() -> None:
    stored = context(rows(dropped=["a7", "m1", "m2"]))
    assert restore(stored, "a7") == ContextChange(back("m1", "m2", "a7"))
    assert restore(stored, "a8") == ContextChange(back("m1", "m2"))
    assert restore(stored, "m1") == ContextChange(back("m1", "m2"))


def test_of_the_turn_that_waits_for_its_answer_only_documents_can_be_dropped() -> None:
    waiting = context(rows(), [*turns(1), question(3, "Look.", OWLS)])
    assert drop(waiting, "m3") == NO_CHANGE
    assert drop(waiting, "a7") == ContextChange(dropped("a7"))
    assert drop(context(rows()), "m6") == ContextChange(dropped("m5", "m6"))


def test_a_summary_is_dropped_with_all_that_it_covers() -> None:
    stored = context(rows(summary(1, "m1", "m2"), summary(2, "m1", "m2", "m3", "m4")))
    change = drop(stored, "s2")
    assert change.marks == dropped("m1", "m2", "m3", "m4")
    assert dict(change.summaries) == {1: SummaryState.RETIRED, 2: SummaryState.RETIRED}
    assert states(stored.changed(change)) == [DROPPED, DROPPED, READ]


@pytest.mark.parametrize("key", ["s2", "m1", "m4", "a7"])
def test_the_originals_of_a_summary_come_back_whole_and_no_smaller_summary_takes_its_place(key: str) -> None:
    stored = context(
        rows(
            summary(1, "m1", "m2"),
            summary(2, "m1", "m2", "m3", "m4"),
            summary(3, "a8"),
            summary(4, "m3", "m4", state=SummaryState.PREPARED),
            dropped=["m3", "m4"],
        )
    )
    change = restore(stored, key)
    assert change.marks == back("m3", "m4")
    assert dict(change.summaries) == dict.fromkeys((1, 2, 3, 4), SummaryState.RETIRED)
    restored = stored.changed(change)
    assert states(restored) == [READ, READ, READ]
    assert {span.state for span in restored.spans} == {READ}


def test_a_summary_of_a_document_is_dropped_and_its_document_restored() -> None:
    stored = context(rows(summary(3, "a7")))
    assert drop(stored, "s3") == ContextChange(dropped("a7"), ((3, SummaryState.RETIRED),))
    assert restore(stored, "a7") == ContextChange((), ((3, SummaryState.RETIRED),))


def test_what_cannot_be_done_is_no_change() -> None:
    stored = context(rows(summary(2, "m1", "m2"), dropped=["m3", "m4"]))
    for change in (
        drop(stored, "m1"),  # a summary stands for it
        drop(stored, "a7"),
        drop(stored, "m3"),
        restore(stored, "m5"),
        pin(stored, "s2", True),
        pin(stored, "m5", False),
        drop(stored, "m99"),
        restore(stored, "s99"),
        pin(stored, "a99", True),
    ):
        assert change == NO_CHANGE


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> ConversationStore:
    return ConversationStore.open(tmp_path_factory.mktemp("store") / "conversations.db")


def conversation(store: ConversationStore) -> tuple[int, list[Message]]:
    """Add three turns, the first with a document, and a summary of the first two."""
    mine = store.create_conversation().id
    attached = store.add_attachment(mine, document())
    leaf = None
    for number in range(3):
        asked = store.add_user_message(mine, leaf, f"{number}?", [] if number else [attached.id])
        leaf = store.begin_reply(mine, asked.id, "A model").id
        store.save_partial(leaf, f"{number}.")
    assert leaf is not None
    path = store.path(leaf)
    keys = [f"m{message.id}" for message in path]
    store.add_summary(mine, summary(0, f"a{attached.id}"))
    store.add_summary(mine, summary(0, *keys[:2]))
    store.add_summary(mine, summary(0, *keys[:4]))
    return mine, path


def unpin(found: ConversationContext, key: str) -> ContextChange:
    return pin(found, key, False)


def pin_it(found: ConversationContext, key: str) -> ContextChange:
    return pin(found, key, True)


Doing = Callable[[ConversationContext, str], ContextChange]
DOINGS = st.tuples(st.sampled_from([pin_it, unpin, drop, restore]), st.integers(0, 20))


@settings(max_examples=25, deadline=None)
@given(doings=st.lists(DOINGS, min_size=1, max_size=8))
def test_whatever_is_done_is_undone_in_reverse(
    shared: ConversationStore, doings: list[tuple[Doing, int]]
) -> None:
    mine, path = conversation(shared)
    seen, inverses = [], []
    for doing, place in doings:
        found = ConversationContext.of(path, shared.ledger(mine))
        key = found.spans[place % len(found.spans)].key
        change = doing(found, key)
        seen.append(found.rows)
        inverses.append(shared.change_context(mine, change))
        after = ConversationContext.of(path, shared.ledger(mine))
        assert after == found.changed(change)
        is_read = {span.key: span.state is READ for span in after.spans}
        if change != NO_CHANGE and doing in (drop, restore):
            assert is_read.get(key, False) is (doing is restore and not key.startswith("s"))
    for before, inverse in zip(reversed(seen), reversed(inverses), strict=True):
        shared.change_context(mine, inverse)
        assert shared.ledger(mine) == before


def test_a_summary_that_only_overlaps_does_not_speak_for_what_was_restored() -> None:
    one = summary(1, "m1", "m2", "m3", "m4")
    other = dataclasses.replace(one, id=2, covers=("m3", "m4", "m5", "m6"))
    stored = context(rows(one, other), turns(4))
    assert states(stored) == [READ, SUMMARIZED, SUMMARIZED, READ]
    restored = stored.changed(restore(stored, "s2"))
    assert states(restored) == [READ, READ, READ, READ]


def test_what_was_prepared_of_a_document_that_is_dropped_or_restored_is_not_used() -> None:
    prepared = summary(1, "m1", "m2", state=SummaryState.PREPARED)
    other = summary(2, "m3", "m4", state=SummaryState.PREPARED)
    found = context(rows(prepared, other), [question(1, None, OWLS), answer(2), *turns(3)[2:]])
    gone = drop(found, "a7")
    assert gone.summaries == ((1, SummaryState.RETIRED),)
    again = dataclasses.replace(prepared, id=3)
    without = context(rows(again, dropped=["a7"]), [question(1, None, OWLS), answer(2), *turns(3)[2:]])
    assert restore(without, "a7").summaries == ((3, SummaryState.RETIRED),)
    assert pin(found, "a7", True).summaries == ()


def test_what_was_prepared_of_a_summary_is_not_used_for_its_originals() -> None:
    merged = summary(2, "m1", "m2", "m3", "m4", state=SummaryState.PREPARED)
    found = context(rows(summary(1, "m1", "m2"), merged), turns(3))
    assert dict(restore(found, "m1").summaries) == {1: SummaryState.RETIRED, 2: SummaryState.RETIRED}


def test_several_items_are_changed_at_once() -> None:
    found = context(LedgerRows(), turns(3))
    changed = found.changed(together(found, ["m1", "m5"], drop))
    assert states(changed) == [DROPPED, READ, DROPPED]


def test_restoring_two_turns_of_one_summary_restores_it_once() -> None:
    found = context(rows(summary(3, "m1", "m2", "m3", "m4")), turns(2))
    change = together(found, ["m1", "m3"], restore)
    assert change.summaries == ((3, SummaryState.RETIRED),)
    assert states(found.changed(change)) == [READ] * 2


def test_what_was_before_a_summary_was_written_comes_back() -> None:
    old = summary(2, "m1", "m2")
    before = rows(old, dropped=("m3", "m4"), pinned=("m5",))
    retired = dataclasses.replace(old, state=SummaryState.RETIRED)
    prepared = summary(9, "m5", "m6", state=SummaryState.PREPARED)
    now = rows(retired, summary(3, "m1", "m2", "m3", "m4"), prepared, pinned=("m7",))
    back = back_to(before, now)
    path = turns(4)
    changed = ConversationContext.of(path, now).changed(back)
    assert changed.spans == ConversationContext.of(path, before).spans
    assert 9 not in dict(back.summaries)


def test_nothing_is_changed_back_where_nothing_was_changed() -> None:
    ledger = rows(summary(2, "m1", "m2"), dropped=("m3", "m4"))
    later = LedgerRows(ledger.marks, (*ledger.summaries, summary(4, "m5", state=SummaryState.PREPARED)))
    assert back_to(ledger, later) == back_to(ledger, ledger)
    assert not back_to(ledger, later).summaries and not back_to(ledger, later).marks
