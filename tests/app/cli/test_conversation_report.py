from __future__ import annotations

import dataclasses

from app.cli.conversation_report import csv_rows, report
from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.long_talk.figures import ConversationBench, FactCounts, HeldConversation
from app.profiles import Overflow
from tests.app.ledger.paths import summary
from tests.engine.bench.trim.figures import RUN, long_run, turn

IN, GONE = EntryState.IN_CONTEXT, EntryState.LEFT_OUT


def question(number: int, state: EntryState = IN, *parts: LedgerEntry) -> LedgerEntry:
    return LedgerEntry(
        EntryKind.TURN, f"m{number}", f"Question {number}?", number, state=state, tokens=100, parts=parts
    )


PART = LedgerEntry(EntryKind.DOCUMENT, "a1", "Harbour, part 3", tokens=900, nbytes=9_000_000)
SYSTEM = LedgerEntry(EntryKind.SYSTEM, "system", "The model's own", tokens=19, nbytes=3_300_000)
SUMMARY = LedgerEntry(
    EntryKind.SUMMARY,
    "s1",
    "Summary of turns 1 to 3",
    tokens=250,
    nbytes=4_000_000,
    summary=summary(1, "m1", text="The harbour has 40 boats. " * 8),
    parts=tuple(question(number, EntryState.SUMMARIZED) for number in (1, 2, 3)),
)
SUMMARIZED = HeldConversation(
    Overflow.SUMMARIZE,
    RUN,
    LedgerReport((SYSTEM, SUMMARY, question(4, IN, PART)), tokens=1269, nbytes=20_000_000),
    FactCounts(asked=12, right=7, gone=9, right_again=3, told=5, summarized=4),
)
DROPPED = HeldConversation(
    Overflow.DROP,
    long_run([5, 6, 4]),
    LedgerReport(
        (SYSTEM, question(1, GONE, dataclasses.replace(PART, state=GONE)), question(2, GONE)), tokens=19
    ),
    FactCounts(asked=11, right=6, gone=8, right_again=1, told=0, summarized=0),
)
RESULT = ConversationBench("Harbour", 20_000, 12_000, 15, (SUMMARIZED, DROPPED))


def cells(told: str, beginning: str) -> list[str]:
    """Return the cells of the first row that begins so."""
    return next(line.strip() for line in told.splitlines() if line.strip().startswith(beginning)).split()


def test_what_was_handed_over_and_answered_is_told() -> None:
    told = report(RESULT)
    assert "Harbour: 12,000 of 20,000 tokens were handed over in 15 parts" in told
    assert (
        "With summaries: 60 of 60 turns answered within 2,048 tokens, keys and values at most 30 MB" in told
    )
    silent = dataclasses.replace(RUN, turns=(turn(1, 1), turn(2, 1, is_answered=False)))
    mute = dataclasses.replace(RESULT, conversations=(dataclasses.replace(SUMMARIZED, run=silent),))
    assert "1 of 2 turns answered" in report(mute)


def test_each_trim_is_told_with_its_times() -> None:
    told = report(RESULT)
    assert "Trims: 19; summaries: 3 by the model, 2 by rules" in told
    assert cells(told, "58 ") == ["58", "4", "1,058", "50", "1.5", "s", "0.5", "s"]
    assert cells(told, "median") == ["median", "1.5", "s", "0.5", "s"]


def test_the_context_is_told_with_tokens_bytes_and_states() -> None:
    told = report(RESULT)
    assert cells(told, "System prompt")[2:] == ["19", "3.3", "MB", "in", "context"]
    assert cells(told, "Summary of turns 1 to 3")[6:] == ["250", "4.0", "MB", "in", "context"]
    assert cells(told, "Turns 1 to 3") == ["Turns", "1", "to", "3", "300", "–", "summarized"]
    assert cells(told, "4  Question 4?")[3:] == ["100", "–", "in", "context"]
    assert cells(told, "Harbour, part 3")[3:] == ["900", "9.0", "MB", "in", "context"]
    assert cells(told, "In all")[2:] == ["1,269", "20", "MB", "in", "context"]


def test_the_words_of_a_summary_are_told_below_what_it_stands_for() -> None:
    lines = report(RESULT).splitlines()
    first = next(number for number, line in enumerate(lines) if "Turns 1 to 3" in line) + 1
    told = [line for line in lines[first:] if line.startswith(8 * " ")][:3]
    assert "".join(f"{line.strip()} " for line in told) == "The harbour has 40 boats. " * 8
    assert all(len(line) <= 100 for line in told)


def test_turns_that_were_left_out_are_one_row_with_their_documents() -> None:
    told = report(RESULT)
    assert cells(told[told.index("Without summaries") :], "Turns 1 to 2") == [
        "Turns",
        "1",
        "to",
        "2",
        "1,100",
        "–",
        "left",
        "out",
    ]


def test_facts_are_counted_side_by_side() -> None:
    told = report(RESULT)
    assert cells(told, "answered right while")[-6:] == ["7", "of", "12", "6", "of", "11"]
    assert cells(told, "answered right again")[-6:] == ["3", "of", "9", "1", "of", "8"]
    assert cells(told, "of the same, still told")[-6:] == ["5", "of", "9", "0", "of", "8"]
    assert cells(told, "of the same, told by a summary")[-6:] == ["4", "of", "9", "0", "of", "8"]


def test_every_turn_of_each_conversation_is_a_row_of_the_csv_file() -> None:
    rows = csv_rows(RESULT)
    assert len(rows) == 63
    assert (rows[0]["policy"], rows[-1]["policy"]) == ("summarize", "drop")
    assert rows[-1]["nbytes"] == 4_000_000 and rows[-1]["released_turns"] == 4
