"""What a user does with the context, and takes back: each as a change for the store, which has an inverse.

A change without anything in it means that there is nothing to do, as for a turn that waits for its answer,
which cannot be dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext, LedgerSpan, SpanState
from app.ledger.records import (
    NO_CHANGE,
    ContextChange,
    ItemMark,
    LedgerRows,
    Summary,
    SummaryState,
)
from engine.kv.page_map import SpanKind

Retired = tuple[tuple[int, SummaryState], ...]


def pin(context: ConversationContext, key: str, pinned: bool) -> ContextChange:
    """Return the change that pins, or no longer, the turn of a message, or a document.

    Trims do not release a turn of which a message or document is pinned. A summary cannot be pinned.
    """
    span = _span(context, key)
    if span is None or span.kind is SpanKind.SUMMARY:
        return NO_CHANGE
    keys = (key,) if span.kind is SpanKind.DOCUMENT else context.turns[span.turn].keys
    marks = (dataclasses.replace(_mark(context, each), is_pinned=pinned) for each in keys)
    return _change(context, marks)


def drop(context: ConversationContext, key: str) -> ContextChange:
    """Return the change that leaves out the turn of a message, a document, or a summary with all it covers.

    Nothing to do for what the model does not read anyway; of what a summary stands for, drop that. Nor for
    the turn that waits for its answer, other than its documents. A document that is read in segments or
    looked up can be left out also where its turn is not read.
    """
    span = _span(context, key)
    if span is None:
        return NO_CHANGE
    is_read = span.state is SpanState.IN_CONTEXT
    if span.kind is SpanKind.DOCUMENT:
        is_available = not context.ways.is_whole(key) and context.ways.is_available(key)
        return _change(context, _dropped(context, (key,) if is_read or is_available else (), True))
    if not is_read:
        return NO_CHANGE
    if span.kind is SpanKind.SUMMARY:
        assert span.summary is not None
        return _change(context, _dropped(context, span.summary.covers, True), span.summary)
    turn = context.turns[span.turn]
    return NO_CHANGE if turn.is_pending else _change(context, _dropped(context, turn.keys, True))


def restore(context: ConversationContext, key: str) -> ContextChange:
    """Return the change that lets the model read the turn of a message, a document, or a summary's originals.

    What a summary stands for comes back with all else that it stands for. Used summaries of the same items
    are retired with it, so that none of them takes its place. A document of a turn that is left out comes
    back with it.
    """
    span = _span(context, key)
    if span is None:
        return NO_CHANGE
    if span.summary is not None:
        return _change(context, _dropped(context, span.summary.covers, False), span.summary)
    turn = context.turns[span.turn]
    keys = turn.keys if turn.state is SpanState.DROPPED else ()
    own = (key,) if span.kind is SpanKind.DOCUMENT else ()
    return _change(context, _dropped(context, (*keys, *own), False))


def read_by(context: ConversationContext, key: str, way: DocumentWay | None) -> ContextChange:
    """Return the change that has a document read by a way from the next answer on; None: by what is sensible.

    The document may be a draft. One that was read in segments before is read so again where that is chosen.
    """
    newest = max((each.id for each in context.rows.readings), default=0)
    after = newest if way is DocumentWay.SEGMENTS else 0
    return _change(context, [dataclasses.replace(_mark(context, key), way=way, after_reading=after)])


def _span(context: ConversationContext, key: str) -> LedgerSpan | None:
    return next((span for span in context.spans if span.key == key), None)


def _mark(context: ConversationContext, key: str) -> ItemMark:
    return context.rows.marks.get(key, ItemMark(key))


def _dropped(context: ConversationContext, keys: Iterable[str], is_dropped: bool) -> Iterable[ItemMark]:
    return (dataclasses.replace(_mark(context, key), is_dropped=is_dropped) for key in keys)


def _change(
    context: ConversationContext, marks: Iterable[ItemMark], summary: Summary | None = None
) -> ContextChange:
    """Return a change of those marks that are to be others, and of a summary and those of the same items."""
    changed = tuple(mark for mark in marks if mark != _mark(context, mark.key))
    covered = frozenset[str]() if summary is None else _covered(context, summary)
    reread = {mark.key for mark in changed if _reads(mark) != _reads(_mark(context, mark.key))}
    return ContextChange(changed, (*_used_of(context, covered), *_prepared_of(context, covered | reread)))


def _reads(mark: ItemMark) -> tuple[bool, bool]:
    """Return what of a mark decides which words are read of its item."""
    return mark.is_dropped, mark.way in (None, DocumentWay.WHOLE)


def _covered(context: ConversationContext, summary: Summary) -> frozenset[str]:
    return next(keys for each, keys in context.items.used(context.rows.summaries) if each == summary)


def _used_of(context: ConversationContext, covered: frozenset[str]) -> Retired:
    used = context.items.used(context.rows.summaries)
    return tuple((each.id, SummaryState.RETIRED) for each, keys in used if not covered.isdisjoint(keys))


def _prepared_of(context: ConversationContext, keys: frozenset[str]) -> Retired:
    """Retire what was prepared of items, or of the turns of documents: it was written of other words."""
    items = context.items
    touched = keys.union(*(items.keys[items.turn_of[key]] for key in keys & items.documents.keys()))
    return tuple(
        (each.id, SummaryState.RETIRED)
        for each in context.rows.summaries
        if each.state is SummaryState.PREPARED and not touched.isdisjoint(each.covers)
    )


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


def brought_along(context: ConversationContext, keys: Iterable[str]) -> int:
    """Return how many turns come back with items that are restored, as the same summary stands for them."""
    keys = tuple(keys)
    after = context.changed(together(context, keys, restore))
    named = {context.items.turn_of[key] for key in keys if key in context.items.turn_of}
    return sum(
        was.summary is not None and now.summary is None and index not in named and was.summary.key not in keys
        for index, (was, now) in enumerate(zip(context.turns, after.turns, strict=True))
    )


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
