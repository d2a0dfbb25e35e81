"""Which turns leave a context that is too long, and what stands in their place: the policy, and no more.

Whole turns are released, the oldest and coldest first. Those that are pinned stay, and so does the last one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import ContextChange, ItemMark, Summary, SummarySource, SummaryState
from app.ledger.run import Run
from app.ledger.summary_request import most_summary_tokens
from engine.context_usage import SpanUsage

HOT_RATE = 2.0
"""A turn that gets so many times the average attention, token by token, is released after all others."""

Order = Sequence[int]
"""Indexes of turns, the first to be released first."""


@dataclass(frozen=True)
class TokenMeasure:
    """How tokens are counted.

    Attributes:
        prompt: those of the prompt that a context makes.
        run: those of a context that a run takes.
        text: those of a text alone.
    """

    prompt: Callable[[ConversationContext], int]
    run: Callable[[ConversationContext, Run], int]
    text: Callable[[str], int]


@dataclass(frozen=True)
class TrimPlan:
    """What a trim does.

    Attributes:
        released: indexes of the turns that leave the context.
        runs: what is summarized; empty where turns are dropped.
        change: marks, and the prepared summaries that are used now.
        context: the context afterwards, in which text of the same length stands for what is to be written.
        num_tokens: tokens of the prompt that it makes.
    """

    released: frozenset[int]
    runs: tuple[Run, ...]
    change: ContextChange
    context: ConversationContext
    num_tokens: int

    @property
    def num_turns(self) -> int:
        """How many turns it is about, those included that a summary which is taken in stands for now."""
        return sum(len(run.turns) for run in self.runs) or len(self.released)

    @property
    def unwritten(self) -> tuple[Run, ...]:
        """The runs whose summaries are still to be written."""
        return tuple(run for run in self.runs if run.prepared is None)


def release_order(
    context: ConversationContext, usage: Iterable[SpanUsage] = (), last: Collection[int] = ()
) -> Order:
    """Return the turns that may be released, in the order in which they are.

    Args:
        context: what the model reads.
        usage: what its parts take; a turn of which nothing is known counts as cold.
        last: indexes of turns that go after all others, hot ones included.
    """
    candidates = [
        index
        for index, turn in enumerate(context.turns[:-1])
        if turn.state is SpanState.IN_CONTEXT and not turn.is_pinned and not turn.is_pending
    ]
    hot = _hot_turns(context, candidates, usage)
    return sorted(candidates, key=lambda index: (index in last, index in hot, index))


def _hot_turns(
    context: ConversationContext, candidates: Sequence[int], usage: Iterable[SpanUsage]
) -> frozenset[int]:
    heat, tokens = dict.fromkeys(candidates, 0.0), dict.fromkeys(candidates, 0)
    for each in usage:
        turn = context.items.turn_of.get(each.key)
        if turn in heat:
            heat[turn] += each.heat
            tokens[turn] += each.num_tokens
    hot = HOT_RATE * sum(heat.values()) / max(1, sum(tokens.values()))
    return frozenset(turn for turn in candidates if heat[turn] and heat[turn] >= hot * tokens[turn])


def find_runs(context: ConversationContext, released: Collection[int]) -> tuple[Run, ...]:
    """Return what a summary each is to stand for: turns in a row, with the summaries between and beside them.

    What was dropped does not part a run, and is no part of it.
    """
    runs, stretch = [], list[int]()
    for index, turn in enumerate(context.turns):
        if index in released or turn.state is SpanState.SUMMARIZED:
            stretch.append(index)
        elif turn.state is SpanState.IN_CONTEXT:
            runs.append(_run(context, released, stretch))
            stretch = []
    runs.append(_run(context, released, stretch))
    return tuple(run for run in runs if run is not None)


def _run(context: ConversationContext, released: Collection[int], stretch: Sequence[int]) -> Run | None:
    """Return the run of a stretch, None where nothing in it is released.

    A summary that stands for a turn elsewhere, too, is no part of it.
    """
    if not any(index in released for index in stretch):
        return None
    inside = {index: context.turns[index].summary for index in stretch if index not in released}
    elsewhere = {
        turn.summary.key
        for index, turn in enumerate(context.turns)
        if turn.summary is not None and index not in inside
    }
    merged = {
        index: summary.key
        for index, summary in inside.items()
        if summary is not None and summary.key not in elsewhere
    }
    turns = tuple(index for index in stretch if index in released or index in merged)
    covers = tuple(key for index in turns for key in context.turns[index].keys)
    return Run(turns, covers, frozenset(merged.values()))


def plan_trim(
    context: ConversationContext,
    order: Order,
    measure: TokenMeasure,
    most_tokens: int,
    *,
    summarizes: bool,
    enough_tokens: int = 0,
) -> TrimPlan | None:
    """Return the smallest trim that leaves at most so many tokens; the largest one where none does.

    None where no turn may be released, or where summaries would be as long as what they replace.

    Args:
        context: what the model reads.
        order: the turns that may be released.
        measure: counts tokens.
        most_tokens: what the prompt may have afterwards.
        summarizes: whether summaries stand in the place of what is released.
        enough_tokens: what it may have where prepared summaries alone lead there.
    """
    if not order:
        return None
    planner = _Planner(context, measure, summarizes)
    if (ready := planner.with_prepared(order, max(most_tokens, enough_tokens))) is not None:
        return ready
    counts = range(1, len(order))
    fewest = bisect_left(
        counts, True, key=lambda count: planner.plan(order[:count]).num_tokens <= most_tokens
    )
    plan = planner.plan(order[: fewest + 1])
    return plan if plan.num_tokens < measure.prompt(context) else None


class _Planner:
    """Makes plans of what is released from one context."""

    def __init__(self, context: ConversationContext, measure: TokenMeasure, summarizes: bool) -> None:
        self._context = context
        self._measure = measure
        self._summarizes = summarizes

    def plan(self, released: Iterable[int]) -> TrimPlan:
        """Return the plan that releases these turns."""
        turns = frozenset(released)
        if not self._summarizes:
            return self._planned(turns, (), dropped(self._context, turns))
        return self._planned(turns, *summarized(self._context, turns))

    def _planned(self, turns: frozenset[int], runs: tuple[Run, ...], change: ContextChange) -> TrimPlan:
        stand_ins = tuple(self._stand_ins(run for run in runs if run.prepared is None))
        context = self._context.changed(change, *stand_ins)
        return TrimPlan(turns, runs, change, context, self._measure.prompt(context))

    def _stand_ins(self, runs: Iterable[Run]) -> Iterator[Summary]:
        """Yield summaries of the length that those to be written have at most."""
        for run in runs:
            source_tokens = self._measure.run(self._context, run)
            most = most_summary_tokens(source_tokens)
            yield Summary(
                id=0,
                text=filler(most, self._measure.text),
                covers=run.covers,
                source=SummarySource.MODEL,
                note="",
                model="",
                source_tokens=source_tokens,
                num_tokens=most,
                state=SummaryState.USED,
            )

    def with_prepared(self, order: Order, most_tokens: int) -> TrimPlan | None:
        """Return the plan that only uses what is prepared, None where that is not enough."""
        released: frozenset[int] = frozenset()
        for summary in _prepared(self._context) if self._summarizes else ():
            turns = self._turns_of(summary) & frozenset(order)
            if not turns:
                continue
            plan = self.plan(released | turns)
            if plan.unwritten:
                continue  # it is no longer of just what would be summarized
            if plan.num_tokens <= most_tokens:
                return plan
            released |= turns
        return None

    def _turns_of(self, summary: Summary) -> frozenset[int]:
        """Return the turns that a summary covers, none where some are not on the path."""
        covered = self._context.items.covered(summary)
        turns = None if covered is None else self._context.items.whole_turns(covered)
        return turns or frozenset()


def summarized(context: ConversationContext, turns: Collection[int]) -> tuple[tuple[Run, ...], ContextChange]:
    """Return the runs that turns are in, and the change that lets what is prepared stand for them."""
    prepared = _prepared(context)
    runs = tuple(run.with_prepared(prepared) for run in find_runs(context, turns))
    ready = [run.prepared.id for run in runs if run.prepared is not None]
    return runs, ContextChange(summaries=tuple((each, SummaryState.USED) for each in ready))


def _prepared(context: ConversationContext) -> list[Summary]:
    """Return the prepared summaries, the newest first."""
    return [each for each in reversed(context.rows.summaries) if each.state is SummaryState.PREPARED]


def dropped(context: ConversationContext, turns: Iterable[int]) -> ContextChange:
    """Return the change that leaves turns out."""
    keys = (key for index in sorted(turns) for key in context.turns[index].keys)
    return ContextChange(marks=tuple(ItemMark(key, is_dropped=True) for key in keys))


def filler(num_tokens: int, count: Callable[[str], int]) -> str:
    """Return words that are about so many tokens."""
    sample = 32
    return "word " * max(1, round(num_tokens * sample / count("word " * sample)))
