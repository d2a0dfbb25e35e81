"""Where turns are that the model does not read itself."""

from __future__ import annotations

import dataclasses

from app.ledger.context import ConversationContext, SpanState
from app.ledger.left_out import LeftOutRun, left_out_documents, left_out_runs
from app.ledger.records import LedgerRows
from tests.app.ledger.paths import BATS, OWLS, answer, question, rows, summary, turns


def runs(stored: LedgerRows) -> tuple[LeftOutRun, ...]:
    return left_out_runs(ConversationContext.of(turns(5), stored))


def test_turns_under_one_summary_are_one_run_above_the_first_message_that_is_read() -> None:
    first = summary(3, "m1", "m2", "m3", "m4")
    assert runs(rows(first)) == (LeftOutRun("s3", 4, 5, first),)


def test_turns_that_are_dropped_and_turns_under_a_summary_are_apart() -> None:
    first, second = summary(3, "m1", "m2"), summary(4, "m3", "m4")
    stored = dataclasses.replace(rows(first, second), marks=rows(dropped=("m5", "m6", "m9", "m10")).marks)
    assert runs(stored) == (
        LeftOutRun("s3", 2, 3, first),
        LeftOutRun("s4", 2, 5, second),
        LeftOutRun("m5", 2, 7, None),
        LeftOutRun("m9", 2, None, None),
    )


def test_there_is_none_while_all_is_read() -> None:
    assert runs(LedgerRows()) == ()


def test_documents_of_a_turn_that_is_read_are_told_that_are_not_read_themselves() -> None:
    path = [question(1, "a", OWLS, BATS), answer(2)]
    stored = rows(summary(3, "a7"), dropped=["a8"])
    documents = left_out_documents(ConversationContext.of(path, stored))
    assert documents == {OWLS.id: SpanState.SUMMARIZED, BATS.id: SpanState.DROPPED}
    assert left_out_documents(ConversationContext.of(path, rows())) == {}
