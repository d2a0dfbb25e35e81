"""Which turns leave a context that is too long, and what stands in their place: the policy, and no more.

Whole turns are released, the oldest and coldest first. Those that are pinned stay, and so does the last one.
Where even the summaries of all of them leave too much, the oldest of these are left out.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from app.ledger.actions import drop, together
from app.ledger.context import ConversationContext, SpanState
from app.ledger.records import ContextChange, ItemMark, Summary, SummarySource, SummaryState
from app.ledger.run import Run, find_runs
from app.ledger.summary_request import most_summary_tokens, summaries_room_tokens
from engine.context_usage import SpanUsage
from engine.reply_admission import MIN_ANSWER_TOKENS

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
        left_out: what there is no room for a summary of; summaries among it are left out as well.
    """

    released: frozenset[int]
    runs: tuple[Run, ...]
    change: ContextChange
    context: ConversationContext
    num_tokens: int
    left_out: tuple[Run, ...] = ()

    @property
    def num_turns(self) -> int:
        """How many turns it is about, those included that a summary which is taken in stands for now."""
        return len(self.released.union(*(run.turns for run in (*self.runs, *self.left_out))))

    @property
    def unwritten(self) -> tuple[Run, ...]:
        """The runs whose summaries are still to be written."""
        return tuple(run for run in self.runs if run.prepared is None)


def release_order(context: ConversationContext, usage: Iterable[SpanUsage] = ()) -> Order:
    """Return the turns that may be released, in the order in which they are.

    Args:
        context: what the model reads.
        usage: what its parts take; a turn of which nothing is known counts as cold.
    """
    candidates = [
        index
        for index, turn in enumerate(context.turns[:-1])
        if turn.state is SpanState.IN_CONTEXT and not turn.is_pinned and not turn.is_pending
    ]
    hot = _hot_turns(context, candidates, usage)
    return sorted(candidates, key=lambda index: (index in hot, index))


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


def plan_trim(
    context: ConversationContext,
    order: Order,
    measure: TokenMeasure,
    most_tokens: int,
    *,
    summarizes: bool,
    enough_tokens: int = 0,
    limit_tokens: int | None = None,
) -> TrimPlan | None:
    """Return the smallest trim that leaves at most so many tokens; the largest one where none does.

    None where nothing may be released, or where summaries would be as long as what they replace.

    Args:
        context: what the model reads.
        order: the turns that may be released.
        measure: counts tokens.
        most_tokens: what the prompt may have afterwards.
        summarizes: whether summaries stand in the place of what is released.
        enough_tokens: what it may have where prepared summaries alone lead there.
        limit_tokens: the context that it is to fit into, None where that is no matter.
    """
    planner = _Planner(context, measure, summarizes, limit_tokens)
    if not order:
        return planner.fitted(())
    if (ready := planner.with_prepared(order, max(most_tokens, enough_tokens))) is not None:
        return ready
    counts = range(1, len(order))
    fewest = bisect_left(
        counts, True, key=lambda count: planner.plan(order[:count]).num_tokens <= most_tokens
    )
    plan = planner.fitted(order[: fewest + 1])
    return plan if plan is not None and plan.num_tokens < measure.prompt(context) else None


class _Planner:
    """Makes plans of what is released from one context."""

    def __init__(
        self,
        context: ConversationContext,
        measure: TokenMeasure,
        summarizes: bool,
        limit_tokens: int | None,
    ) -> None:
        self._context = context
        self._measure = measure
        self._summarizes = summarizes
        self._limit_tokens = limit_tokens

    def plan(self, released: Iterable[int], left_out: Sequence[Run] = ()) -> TrimPlan:
        """Return the plan that releases these turns; without a summary of what is left out."""
        turns = frozenset(released)
        kept = turns.difference(*(run.turns for run in left_out))
        runs: tuple[Run, ...] = ()
        change = dropped(self._context, kept)
        if self._summarizes:
            runs, change = summarized(self._context, kept, self._limit_tokens)
        gone = _left_out(self._context, turns, left_out)
        change = ContextChange((*change.marks, *gone.marks), (*change.summaries, *gone.summaries))
        stand_ins = tuple(self._stand_ins(run for run in runs if run.prepared is None))
        context = self._context.changed(change, *stand_ins)
        return TrimPlan(turns, runs, change, context, self._measure.prompt(context), tuple(left_out))

    def fitted(self, released: Sequence[int]) -> TrimPlan | None:
        """Return the plan that releases these turns and leaves out as few summaries as it takes to fit.

        The oldest go first, those that stand already included. None where nothing is done.
        """
        plan = self.plan(released)
        most = plan.num_tokens if self._limit_tokens is None else self._limit_tokens - MIN_ANSWER_TOKENS
        runs = self._standing_for(plan.released) if plan.num_tokens > most else ()
        for count in range(1, len(runs) + 1):
            plan = self.plan(released, runs[:count])
            if plan.num_tokens <= most:
                break
        return plan if plan.released or plan.left_out else None

    def _standing_for(self, released: frozenset[int]) -> list[Run]:
        """Return the summaries that are to stand, as runs, the oldest first; not those of what is pinned."""
        context = self._context
        runs = list(find_runs(context, released)) if self._summarizes else []
        merged = frozenset[str]().union(*(run.merged for run in runs))
        turns_of: dict[Summary, list[int]] = {}
        for index, summary in sorted(context.standing.turn_summaries.items()):
            turns_of.setdefault(summary, []).append(index)
        runs += [
            Run(tuple(turns), summary.covers, frozenset([summary.key]))
            for summary, turns in turns_of.items()
            if summary.key not in merged and not any(context.turns[index].is_pinned for index in turns)
        ]
        return sorted(runs, key=lambda run: run.turns)

    def _stand_ins(self, runs: Iterable[Run]) -> Iterator[Summary]:
        """Yield summaries of the length that those to be written have at most."""
        for run in runs:
            source_tokens = self._measure.run(self._context, run)
            most = most_summary_tokens(source_tokens, run.room_tokens)
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


def summarized(
    context: ConversationContext, turns: Collection[int], limit_tokens: int | None
) -> tuple[tuple[Run, ...], ContextChange]:
    """Return the runs that turns are in, and the change that lets what is prepared stand for them.

    Their summaries have room in a context of so many tokens, None where that is no matter.
    """
    prepared, found = _prepared(context), find_runs(context, turns)
    room = None if limit_tokens is None else summaries_room_tokens(limit_tokens, max(1, len(found)))
    runs = tuple(dataclasses.replace(run, room_tokens=room).with_prepared(prepared) for run in found)
    ready = [run.prepared.id for run in runs if run.prepared is not None]
    return runs, ContextChange(summaries=tuple((each, SummaryState.USED) for each in ready))


def _prepared(context: ConversationContext) -> list[Summary]:
    """Return the prepared summaries, the newest first."""
    return [each for each in reversed(context.rows.summaries) if each.state is SummaryState.PREPARED]


def dropped(context: ConversationContext, turns: Iterable[int]) -> ContextChange:
    """Return the change that leaves turns out."""
    keys = (key for index in sorted(turns) for key in context.turns[index].keys)
    return ContextChange(marks=tuple(ItemMark(key, is_dropped=True) for key in keys))


def _left_out(context: ConversationContext, released: Collection[int], runs: Iterable[Run]) -> ContextChange:
    """Return the change that leaves out what there is no room for a summary of, with its summaries."""
    keys = [
        key
        for run in runs
        for key in (*run.merged, *(context.turns[at].keys[0] for at in run.turns if at in released))
    ]
    return together(context, keys, drop)


def filler(num_tokens: int, count: Callable[[str], int]) -> str:
    """Return words that are about so many tokens."""
    sample = 32
    return "word " * max(1, round(num_tokens * sample / count("word " * sample)))
