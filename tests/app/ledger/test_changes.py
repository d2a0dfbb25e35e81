"""Changes of a context made of others."""

from __future__ import annotations

import dataclasses

from app.ledger.actions import drop, restore
from app.ledger.changes import back_to, together
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import LedgerRows, SummaryState
from tests.app.ledger.paths import rows, summary, turns


def states(context: ConversationContext) -> list[SpanState]:
    return [turn.state for turn in context.turns]


def test_several_items_are_changed_at_once() -> None:
    context = ConversationContext.of(turns(3), LedgerRows())

    changed = context.changed(together(context, ["m1", "m5"], drop))

    assert states(changed) == [SpanState.DROPPED, SpanState.IN_CONTEXT, SpanState.DROPPED]


def test_restoring_two_turns_of_one_summary_restores_it_once() -> None:
    context = ConversationContext.of(turns(2), rows(summary(3, "m1", "m2", "m3", "m4")))

    change = together(context, ["m1", "m3"], restore)

    assert change.summaries == ((3, SummaryState.RETIRED),)
    assert states(context.changed(change)) == [SpanState.IN_CONTEXT] * 2


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
