"""Context ledgers of conversations that never were."""

from __future__ import annotations

import dataclasses
import random

from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.ledger.records import Summary, SummarySource, SummaryState

QUESTIONS = (
    "What is the budget?",
    "Who decides about the extension of the observation period, and until when?",
    "And in winter?",
    "Compare that with the numbers of the second table, please, and say where they differ",
    "Which of these is the largest?",
)


def summary(number: int = 1, *, is_extract: bool = False) -> Summary:
    """Return a summary of turns."""
    return Summary(
        id=number,
        text="The budget is 12,400 euros. Anna decides until 3 May. Open: who counts the owls in winter.",
        covers=("m1", "m2"),
        source=SummarySource.EXTRACT if is_extract else SummarySource.MODEL,
        note="The model's summary repeated itself, so these are sentences of the text itself."
        if is_extract
        else "",
        model="" if is_extract else "SmolLM2-135M-Instruct",
        source_tokens=1_204,
        num_tokens=124,
        state=SummaryState.USED,
    )


def turn(number: int, **changes: object) -> LedgerEntry:
    """Return a turn that is read."""
    entry = LedgerEntry(
        EntryKind.TURN,
        f"m{2 * number - 1}",
        QUESTIONS[number % len(QUESTIONS)],
        number,
        tokens=120,
        nbytes=780_000,
        heat=0.02,
        heat_rate=1.0,
        can_pin=True,
        can_drop=True,
        can_summarize=True,
    )
    return dataclasses.replace(entry, **changes)


def unread(number: int) -> LedgerEntry:
    """Return the turn that waits for its answer, before it is read."""
    return turn(
        number,
        state=EntryState.UNREAD,
        tokens=22,
        is_about=True,
        nbytes=None,
        heat=None,
        heat_rate=None,
        can_drop=False,
        can_summarize=False,
    )


def left(entry: LedgerEntry, state: EntryState = EntryState.LEFT_OUT, **changes: object) -> LedgerEntry:
    """Return a row that the model does not read."""
    return dataclasses.replace(
        entry,
        state=state,
        nbytes=None,
        heat=None,
        heat_rate=None,
        can_pin=False,
        can_drop=False,
        can_summarize=False,
        can_restore=True,
        **changes,
    )


def document(number: int, title: str, **changes: object) -> LedgerEntry:
    """Return a document that is read."""
    entry = turn(number, tokens=1_130, nbytes=7_300_000, heat=0.31)
    return dataclasses.replace(
        entry, kind=EntryKind.DOCUMENT, key=f"a{number}", title=title, number=0, **changes
    )


def summary_row(number: int, first: int, stop: int, **changes: object) -> LedgerEntry:
    """Return a summary of turns from `first` to before `stop`, with these."""
    written = summary(number, is_extract=number == 2)
    parts = tuple(
        left(
            turn(each),
            EntryState.SUMMARIZED,
            is_on_disk=each % 2 == 0,
            is_about=each % 2 == 1,
        )
        for each in range(first, stop)
    )
    entry = LedgerEntry(
        EntryKind.SUMMARY,
        f"s{number}",
        f"Summary of turns {first} to {stop - 1}",
        tokens=124,
        nbytes=810_000,
        heat=0.04,
        heat_rate=1.7,
        summary=written,
        can_drop=True,
        can_restore=True,
        parts=parts,
    )
    return dataclasses.replace(entry, **changes)


SYSTEM = LedgerEntry(
    EntryKind.SYSTEM,
    "system",
    "You are a careful assistant.",
    tokens=34,
    nbytes=220_000,
    heat=0.2,
    heat_rate=6.0,
)


def long_ledger() -> LedgerReport:
    """Return 40 turns with 3 summaries, 2 documents, pinned turns and such that were left out."""
    chance = random.Random(3)

    def any_turn(number: int) -> LedgerEntry:
        return turn(number, tokens=chance.randrange(40, 400), heat_rate=chance.lognormvariate(0, 1))

    first = turn(1, tokens=88, parts=(document(1, "paper-14-pages.pdf", heat_rate=2.6),))
    rows = [SYSTEM, first, summary_row(1, 2, 14), dataclasses.replace(any_turn(14), is_pinned=True)]
    rows += [left(any_turn(15), is_on_disk=True), left(any_turn(16), is_about=True)]
    rows += [summary_row(2, 17, 22), any_turn(22)]
    rows.append(
        turn(23, parts=(document(23, "Ecology of the barn owl, second edition.pdf", is_pinned=True),))
    )
    rows += [summary_row(3, 24, 30), *(any_turn(number) for number in range(30, 40))]
    rows.append(
        turn(
            40,
            tokens=22,
            can_drop=False,
            can_summarize=False,
            state=EntryState.UNREAD,
            is_about=True,
            nbytes=None,
            heat_rate=None,
        )
    )
    return LedgerReport(
        tuple(rows),
        tokens=3_412,
        nbytes=31_000_000,
        limit_tokens=4_096,
        shares=(
            (EntryKind.SYSTEM, 34),
            (EntryKind.DOCUMENT, 1_260),
            (EntryKind.TURN, 1_746),
            (EntryKind.SUMMARY, 372),
        ),
        next_position=5_466,
        positions=8_192,
        empty_positions=2_054,
        versions=1,
        versions_nbytes=3_100_000,
    )
