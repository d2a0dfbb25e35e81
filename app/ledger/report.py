"""The context of a conversation as rows: what the ledger says, what is held, and what was counted."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.ledger.context import ConversationContext, LedgerSpan, SpanState
from app.ledger.entries import EntryKind, EntryState, LedgerEntry, LedgerReport
from app.reading.records import placeholder_key
from engine.context_usage import ContextUsage, SpanUsage
from engine.kv.page_map import SpanKind

SYSTEM_KEY = "system"
"""The key of the system prompt's row, and of its tokens among those that were counted."""
_STATES = {SpanState.SUMMARIZED: EntryState.SUMMARIZED, SpanState.DROPPED: EntryState.LEFT_OUT}


def ledger_report(
    context: ConversationContext,
    system_prompt: str,
    usage: ContextUsage | None,
    counts: Mapping[str, int],
    *,
    tokens: int | None = None,
    is_about: bool = True,
    limit_tokens: int | None = None,
) -> LedgerReport:
    """Return the rows of a context and their sums.

    Args:
        context: the ledger of the path.
        system_prompt: what comes before it, empty without one.
        usage: what the engine holds of this conversation, None where it holds nothing of it.
        counts: tokens of what was counted, by key; what is held tells better.
        tokens: what all of the context takes, None where that is not known.
        is_about: whether that is an estimate.
        limit_tokens: what the context holds, None without a model.
    """
    rows = _Rows(context, _Figures.of(usage, counts), has_model=limit_tokens is not None)
    system = rows.system(system_prompt)
    entries = (*([system] if system is not None else []), *rows.entries())
    shares = _shares(entries)
    around = max(0, (tokens or 0) - sum(share for _, share in shares)) if _is_counted(entries) else 0
    report = LedgerReport(
        entries, tokens, is_about, limit_tokens=limit_tokens, shares=shares, around_tokens=around
    )
    if usage is None:
        return report
    return dataclasses.replace(
        report,
        nbytes=usage.nbytes,
        unused_nbytes=usage.unused_nbytes,
        next_position=usage.next_position,
        positions=usage.positions,
        empty_positions=max(0, usage.next_position - usage.num_tokens),
        versions=usage.versions,
        versions_nbytes=usage.versions_nbytes,
    )


def _read(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    every = (entry for top in entries for entry in top.walk())
    return [entry for entry in every if entry.state.is_in_context]


def _is_counted(entries: Iterable[LedgerEntry]) -> bool:
    return all(entry.tokens is not None for entry in _read(entries))


def _shares(entries: Iterable[LedgerEntry]) -> tuple[tuple[EntryKind, int], ...]:
    shares = Counter[EntryKind]()
    for entry in _read(entries):
        if entry.tokens:
            shares[entry.kind] += entry.tokens
    return tuple((kind, shares[kind]) for kind in EntryKind if shares[kind])


@dataclass(frozen=True)
class _Figures:
    """What is known of items by their keys.

    Attributes:
        held: what the engine holds of each, a system prompt by its row's key; None where it holds nothing.
        released: tokens of what is on disk.
        counts: tokens that were counted from the words.
        heat_of_a_token: the attention that a token gets on average, 0 before it was sampled.
    """

    held: Mapping[str, SpanUsage] | None
    released: Mapping[str, int]
    counts: Mapping[str, int]
    heat_of_a_token: float

    @classmethod
    def of(cls, usage: ContextUsage | None, counts: Mapping[str, int]) -> _Figures:
        if usage is None:
            return cls(None, {}, counts, 0.0)
        held: dict[str, SpanUsage] = {}
        for span in usage.spans:
            key = SYSTEM_KEY if span.kind is SpanKind.SYSTEM else span.key
            held[key] = _sum_of([held[key], span]) if key in held else span
        tokens = sum(span.num_tokens for span in usage.spans)
        heat = sum(span.heat for span in usage.spans)
        released = {each.key: each.num_tokens for each in usage.released}
        return cls(held, released, counts, heat / tokens if tokens else 0.0)

    def filled(self, entry: LedgerEntry, keys: Sequence[str]) -> LedgerEntry:
        """Return a row with what is known of the items that it consists of."""
        held = self.held or {}
        spans = [held[key] for key in keys if key in held]
        if not spans or not entry.state.is_in_context:
            state = EntryState.UNREAD if entry.state.is_in_context else entry.state
            is_on_disk = bool(keys) and all(key in self.released for key in keys)
            tokens = sum(self.released[key] for key in keys) if is_on_disk else self._counted(keys)
            return dataclasses.replace(
                entry, state=state, tokens=tokens, is_about=not is_on_disk, is_on_disk=is_on_disk
            )
        whole = _sum_of(spans)
        is_sampled = self.heat_of_a_token > 0 and whole.num_tokens > 0
        rate = whole.heat / whole.num_tokens / self.heat_of_a_token if is_sampled else None
        return dataclasses.replace(
            entry,
            tokens=whole.num_tokens,
            nbytes=whole.nbytes,
            heat=whole.heat if is_sampled else None,
            heat_rate=rate,
        )

    def _counted(self, keys: Sequence[str]) -> int | None:
        """Return the tokens of items as counted, None while one of them is not."""
        return sum(self.counts[key] for key in keys) if all(key in self.counts for key in keys) else None


def _sum_of(spans: Sequence[SpanUsage]) -> SpanUsage:
    return dataclasses.replace(
        spans[0],
        num_tokens=sum(span.num_tokens for span in spans),
        nbytes=sum(span.nbytes for span in spans),
        heat=sum(span.heat for span in spans),
    )


class _Rows:
    """Makes rows of the spans of a context: turns under their summary, documents under their turn."""

    def __init__(self, context: ConversationContext, figures: _Figures, *, has_model: bool) -> None:
        self._context = context
        self._has_model = has_model
        self._figures = figures
        self._of_turn: dict[int, list[LedgerSpan]] = defaultdict(list)
        self._turns_of: dict[str, list[int]] = defaultdict(list)
        self._summaries = {span.key: span for span in context.spans if span.kind is SpanKind.SUMMARY}
        for span in context.spans:
            if span.kind is not SpanKind.SUMMARY or self._is_of_document(span):
                self._of_turn[span.turn].append(span)
        for index, turn in enumerate(context.turns):
            if turn.summary is not None:
                self._turns_of[turn.summary.key].append(index)

    def system(self, system_prompt: str) -> LedgerEntry | None:
        """Return the row of the system prompt, None without one; a template may bring its own along."""
        held = (self._figures.held or {}).get(SYSTEM_KEY)
        words = " ".join(system_prompt.split())
        if held is None and not words:
            return None
        title = words or (held.title if held is not None else "")
        return self._figures.filled(LedgerEntry(EntryKind.SYSTEM, SYSTEM_KEY, title), [SYSTEM_KEY])

    def entries(self) -> list[LedgerEntry]:
        """Return the rows of the conversation, in order."""
        entries, done = [], set[str]()
        for index, turn in enumerate(self._context.turns):
            if turn.summary is None:
                entries.append(self._turn(index))
            elif turn.summary.key not in done:
                done.add(turn.summary.key)
                entries.append(self._summary_of_turns(turn.summary.key))
        return entries

    def _is_of_document(self, span: LedgerSpan) -> bool:
        """Return whether a summary stands for a document alone, whose turn is read or left out by itself."""
        turn = self._context.turns[span.turn]
        return turn.summary is None or turn.summary.key != span.key

    def _summary_of_turns(self, key: str) -> LedgerEntry:
        span = self._summaries[key]
        turns = tuple(self._turn(index) for index in self._turns_of[key])
        return dataclasses.replace(self._summary(span, turns), title=_title_of(turns, span.title))

    def _summary(self, span: LedgerSpan, parts: tuple[LedgerEntry, ...]) -> LedgerEntry:
        is_read = self._context.turns[span.turn].state is not SpanState.DROPPED
        state = EntryState.IN_CONTEXT if is_read else EntryState.LEFT_OUT
        entry = LedgerEntry(
            EntryKind.SUMMARY,
            span.key,
            span.title,
            state=state,
            summary=span.summary,
            can_drop=is_read,
            can_restore=True,
            parts=parts,
        )
        filled = self._figures.filled(entry, [span.key])
        if filled.tokens is None and span.summary is not None and self._has_model:
            return dataclasses.replace(filled, tokens=span.summary.num_tokens, is_about=True)
        return filled

    def _turn(self, index: int) -> LedgerEntry:
        turn, spans = self._context.turns[index], self._of_turn[index]
        messages = [span for span in spans if span.kind in (SpanKind.USER, SpanKind.ASSISTANT)]
        is_read = turn.state is SpanState.IN_CONTEXT
        entry = LedgerEntry(
            EntryKind.TURN,
            messages[0].key,
            messages[0].title,
            index + 1,
            state=_STATES.get(turn.state, EntryState.IN_CONTEXT),
            is_pinned=any(span.is_pinned for span in messages),
            can_pin=is_read,
            can_drop=is_read and not turn.is_pending,
            can_summarize=is_read and not turn.is_pending,
            can_restore=not is_read,
            parts=tuple(self._documents(spans)),
        )
        ways = self._context.ways
        readings = [each.key for span in messages for each in ways.written_readings(span.message_id)]
        return self._figures.filled(entry, [*(span.key for span in messages), *readings])

    def _documents(self, spans: Sequence[LedgerSpan]) -> list[LedgerEntry]:
        """Return the rows of a turn's documents; those that a summary stands for are below it."""
        own = {span.key: span for span in spans if span.kind is SpanKind.SUMMARY}
        entries, done = [], set[str]()
        documents = [span for span in spans if span.kind is SpanKind.DOCUMENT]
        for span in documents:
            key = span.summary.key if span.summary is not None else ""
            if key not in own:
                entries.append(self._document(span))
            elif key not in done:
                done.add(key)
                below = [each for each in documents if each.summary is not None and each.summary.key == key]
                entries.append(self._summary(own[key], tuple(self._document(each) for each in below)))
        return entries

    def _document(self, span: LedgerSpan) -> LedgerEntry:
        is_read, ways = span.state is SpanState.IN_CONTEXT, self._context.ways
        is_whole = ways.is_whole(span.key)
        is_available = not is_whole and ways.is_available(span.key)
        entry = LedgerEntry(
            EntryKind.DOCUMENT,
            span.key,
            span.title,
            state=_STATES.get(span.state, EntryState.IN_CONTEXT),
            is_pinned=span.is_pinned,
            can_pin=is_read,
            can_drop=is_read or is_available,
            can_summarize=is_read and is_whole,
            can_restore=not is_read,
            way=span.way if is_available else None,
        )
        key = span.key if is_whole else placeholder_key(ways.document(span.key).id)
        return self._figures.filled(entry, [key])


def _title_of(turns: Sequence[LedgerEntry], title: str) -> str:
    """Return what a summary is called: by the numbers of its turns where these follow each other."""
    first, last = turns[0].number, turns[-1].number
    if last - first + 1 != len(turns):
        return title
    return f"Summary of turn {first:,}" if first == last else f"Summary of turns {first:,} to {last:,}"
