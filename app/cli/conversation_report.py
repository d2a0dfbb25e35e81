"""The tables and the CSV rows of `octavo bench conversation`."""

from __future__ import annotations

import dataclasses
import statistics
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.long_talk.figures import ConversationBench, FactCounts, HeldConversation
from app.profiles import Overflow
from engine.bench.trim.figures import LongRun
from engine.wording import format_nbytes

NAMES = {Overflow.SUMMARIZE: "with summaries", Overflow.DROP: "without summaries"}
_TITLE_CHARACTERS = 44
_TEXT_WIDTH = 100
_INDENT = 8 * " "
_NONE = "–"


def report(result: ConversationBench) -> str:
    """Return what came of each conversation, and what was remembered in each."""
    lines = [
        f"{result.title}: {result.handed_tokens:,} of {result.document_tokens:,} tokens were handed over in "
        f"{result.num_excerpts} parts",
        "",
    ]
    for held in result.conversations:
        lines += [*_conversation(held), ""]
    return "\n".join([*lines, *_facts(result.conversations)])


def csv_rows(result: ConversationBench) -> list[dict[str, object]]:
    """Return a row for each turn of each conversation."""
    return [
        {"policy": held.overflow.value, **dataclasses.asdict(turn)}
        for held in result.conversations
        for turn in held.run.turns
    ]


def _conversation(held: HeldConversation) -> Iterator[str]:
    run = held.run
    sizes = [turn.nbytes for turn in run.turns]
    yield (
        f"{NAMES[held.overflow].capitalize()}: {run.num_answered} of {len(run.turns)} turns answered within "
        f"{run.limit_tokens:,} tokens, keys and values at most {format_nbytes(max(sizes))}"
    )
    yield from _trims(run)
    yield "The context at the end"
    yield from _ledger(held.ledger)


def _trims(run: LongRun) -> Iterator[str]:
    yield (
        f"Trims: {len(run.trims)}; summaries: {run.summaries.model} by the model, {run.summaries.extract} "
        f"by rules; readings again for positions: {run.num_rebuilds}"
    )
    columns = ("turn", "turns left", "tokens", "read", "waited for", "then ready")
    yield "".join(f"{column:>12}" for column in columns)
    for turn in run.trims:
        figures = (
            f"{turn.number}",
            f"{turn.released_turns}",
            f"{turn.prompt_tokens:,}",
            f"{turn.read_tokens:,}",
            f"{turn.summary_s:.1f} s",
            f"{turn.first_token_s:.1f} s",
        )
        yield "".join(f"{figure:>12}" for figure in figures)
    if run.trims:
        waited = statistics.median(turn.summary_s for turn in run.trims)
        ready = statistics.median(turn.first_token_s for turn in run.trims)
        yield f"{'median':>12}{'':>36}{f'{waited:.1f} s':>12}{f'{ready:.1f} s':>12}"


def _ledger(report: LedgerReport) -> Iterator[str]:
    yield f"{'':<2}{'':<{_TITLE_CHARACTERS + 8}}{'tokens':>9}{'size':>11}  state"
    for is_out, entries in groupby(report.entries, key=lambda entry: entry.state is EntryState.LEFT_OUT):
        if is_out:
            yield _row(*_together(list(entries)), EntryState.LEFT_OUT.value)
            continue
        for entry in entries:
            yield _row(_title(entry), entry.tokens, entry.nbytes, entry.state.value)
            if entry.summary is not None:
                yield _row(*_together(entry.parts), EntryState.SUMMARIZED.value)
                yield from textwrap.wrap(
                    entry.summary.text, _TEXT_WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
                )
            for part in entry.parts if entry.summary is None else ():
                yield _row(f"  {_title(part)}", part.tokens, part.nbytes, part.state.value)
    yield _row("In all", report.tokens, report.nbytes, "in context")


def _title(entry: LedgerEntry) -> str:
    title = entry.kind.value if entry.kind is EntryKind.SYSTEM else " ".join(entry.title.split())
    shown = title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"
    return f"{entry.number:>3}  {shown}" if entry.kind is EntryKind.TURN else shown


def _together(entries: Sequence[LedgerEntry]) -> tuple[str, int | None, int | None]:
    """Return one row for turns in a row: what it is called, their tokens with documents, and no size."""
    tokens = [part.tokens for entry in entries for part in entry.walk()]
    title = f"Turns {entries[0].number} to {entries[-1].number}" if len(entries) > 1 else _title(entries[0])
    return f"  {title}", None if None in tokens else sum(each or 0 for each in tokens), None


def _row(title: str, tokens: int | None, nbytes: int | None, state: str) -> str:
    size = _NONE if nbytes is None else format_nbytes(nbytes)
    count = _NONE if tokens is None else f"{tokens:,}"
    return f"{'':<2}{title:<{_TITLE_CHARACTERS + 8}}{count:>9}{size:>11}  {state}"


def _facts(conversations: Sequence[HeldConversation]) -> Iterator[str]:
    yield f"{'Facts of the document':<64}" + "".join(f"{NAMES[held.overflow]:>20}" for held in conversations)
    for title, figures in _FACT_ROWS:
        cells = (f"{figures(held.facts)[0]} of {figures(held.facts)[1]}" for held in conversations)
        yield f"{title:<64}" + "".join(f"{cell:>20}" for cell in cells)


def _right(facts: FactCounts) -> tuple[int, int]:
    return facts.right, facts.asked


def _again(facts: FactCounts) -> tuple[int, int]:
    return facts.right_again, facts.gone


def _told(facts: FactCounts) -> tuple[int, int]:
    return facts.told, facts.gone


def _summarized(facts: FactCounts) -> tuple[int, int]:
    return facts.summarized, facts.gone


_FACT_ROWS = (
    ("answered right while their part was read", _right),
    ("answered right again, of those whose part had left the context", _again),
    ("of the same, still told by what the model reads", _told),
    ("of the same, told by a summary", _summarized),
)
