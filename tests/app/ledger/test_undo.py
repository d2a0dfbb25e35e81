"""What the user has changed of a context can be taken back while nothing has changed the same since."""

from __future__ import annotations

import dataclasses

from app.documents.ways import DocumentWay
from app.ledger.actions import back_to, drop, pin, read_by, restore
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import ContextChange, LedgerRows, Summary, SummaryState
from app.ledger.undo import UserChange
from tests.app.ledger.paths import OWLS, answer, question, reading, rows, summary, turns


def context_of(stored: LedgerRows) -> ConversationContext:
    return ConversationContext.of(turns(5), stored)


def made(
    context: ConversationContext, change: ContextChange, *new: Summary
) -> tuple[ConversationContext, UserChange]:
    """Return the context after a change of the user's, and that change."""
    after = context.changed(change, *new)
    return after, UserChange.between(context, after, back_to(context.rows, after.rows))


def states(context: ConversationContext) -> list[SpanState]:
    return [turn.state for turn in context.turns]


def test_what_was_changed_leads_back_to_what_it_was() -> None:
    context = context_of(rows(summary(1, "m1", "m2", "m3", "m4")))
    for change in (
        drop(context, "m5"),
        pin(context, "m5", True),
        restore(context, "s1"),
        drop(context, "s1"),
    ):
        after, done = made(context, change)
        assert done.leads_back(after)
        assert after.changed(done.inverse).spans == context.spans
        assert not done.leads_back(context)


def test_a_change_of_nothing_is_none() -> None:
    context = context_of(rows(dropped=["m1", "m2"]))
    _, done = made(context, drop(context, "m1"))
    assert done.after == {}


def test_what_a_trim_summarized_since_is_not_taken_back() -> None:
    context = context_of(rows(summary(1, "m1", "m2", "m3", "m4")))
    restored, done = made(context, restore(context, "s1"))
    trimmed = restored.changed(ContextChange(), summary(2, "m1", "m2", "m3", "m4"))
    assert not done.leads_back(trimmed)
    # A trim of other turns is none of its business.
    assert done.leads_back(restored.changed(ContextChange(), summary(2, "m5", "m6")))
    # A trim of more than it is, as it would not all come back.
    assert not done.leads_back(restored.changed(ContextChange(), summary(2, "m3", "m4", "m5", "m6")))


def test_the_restoring_of_what_a_trim_summarized_lets_the_change_before_be_taken_back_again() -> None:
    context = context_of(LedgerRows())
    dropped, first = made(context, drop(context, "m1"))
    trimmed = dropped.changed(ContextChange(), summary(1, "m1", "m2", "m3", "m4"))
    restored, second = made(trimmed, restore(trimmed, "s1"))
    assert not first.leads_back(restored) and second.leads_back(restored)


def test_what_is_not_on_the_path_is_not_taken_back_there_and_what_is_shared_is() -> None:
    context = context_of(LedgerRows())
    after, last = made(context, drop(context, "m9"))
    after, first = made(after, drop(after, "m1"))
    other = ConversationContext.of([*turns(2), question(21), answer(22)], after.rows)
    assert states(other)[0] is SpanState.DROPPED
    assert first.leads_back(other) and not last.leads_back(other)


def test_a_summary_that_does_not_hold_on_another_path_is_not_brought_back_from_there() -> None:
    context = context_of(rows(summary(1, "m1", "m2", "m9", "m10")))
    after, done = made(context, restore(context, "s1"))
    other = ConversationContext.of([*turns(2), question(21), answer(22)], after.rows)
    assert done.leads_back(after) and not done.leads_back(other)


def test_no_two_summaries_of_the_same_are_used_once_all_is_taken_back() -> None:
    context = context_of(rows(summary(1, "m1", "m2"), summary(2, "m1", "m2", "m3", "m4")))
    restored, done = made(context, restore(context, "s2"))
    trimmed = restored.changed(ContextChange(), summary(3, "m1", "m2", "m3", "m4"))
    back, second = made(trimmed, restore(trimmed, "s3"))
    for change in (done, second):
        if change.leads_back(back):
            back = back.changed(change.inverse)
    used = [each for each in back.rows.summaries if each.state is SummaryState.USED]
    assert [each.id for each in used if len(each.covers) == 4] in ([2], [3])


def test_how_a_document_is_read_is_taken_back_while_it_was_not_read_so() -> None:
    path = [question(1, "Look.", OWLS), answer(2), question(3)]
    context = ConversationContext.of(path, LedgerRows())
    after, done = made(context, read_by(context, "a7", DocumentWay.SEGMENTS))
    assert done.leads_back(after)
    assert after.changed(done.inverse).rows == context.rows
    read = after.with_rows(dataclasses.replace(after.rows, readings=(reading(1, 1),)))
    assert not done.leads_back(read)
