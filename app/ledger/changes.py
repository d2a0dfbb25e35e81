"""Changes of a context made of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from app.ledger.context import ConversationContext
from app.ledger.records import ContextChange, ItemMark, LedgerRows, SummaryState


def together(
    context: ConversationContext,
    keys: Iterable[str],
    change: Callable[[ConversationContext, str], ContextChange],
) -> ContextChange:
    """Return one change that does what `change` does with each of several items.

    Each is found in the same context: what is done with one item never depends on what is done with another.
    """
    marks: dict[str, ItemMark] = {}
    summaries: dict[int, SummaryState] = {}
    for key in keys:
        one = change(context, key)
        marks.update({mark.key: mark for mark in one.marks})
        summaries.update(one.summaries)
    return ContextChange(tuple(marks.values()), tuple(summaries.items()))


def back_to(before: LedgerRows, now: LedgerRows) -> ContextChange:
    """Return the change that undoes all that has become of a ledger; summaries written since are retired."""
    unmarked = {key: ItemMark(key) for key in sorted(before.marks.keys() | now.marks.keys())}
    marks = [(before.marks.get(key, none), now.marks.get(key, none)) for key, none in unmarked.items()]
    states = {summary.id: summary.state for summary in before.summaries}
    wanted = [(summary, states.get(summary.id, _unwritten(summary.state))) for summary in now.summaries]
    return ContextChange(
        tuple(old for old, new in marks if old != new),
        tuple((summary.id, state) for summary, state in wanted if state is not summary.state),
    )


def _unwritten(state: SummaryState) -> SummaryState:
    return SummaryState.RETIRED if state is SummaryState.USED else state
