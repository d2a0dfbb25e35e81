"""Taking the figures of a KV cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.context_usage import SpanUsage
from engine.kv.heat import HeatSampler
from engine.kv.page import HeldBits, IntArray
from engine.kv.page_map import PageCounters, PageMap, TextSpan
from engine.kv.page_table import PageReference, PageTable
from engine.kv.precision import KVSpec, Tier
from engine.kv.store import PageStore
from engine.kv.usage import KVUsage, PageInfo


def page_map(
    table: PageTable,
    heat: HeatSampler,
    attention_pages: int | None,
    spans: Sequence[TextSpan],
    counters: PageCounters,
) -> PageMap:
    """Return the pages of a sequence with what `spans` and `counters` say of them.

    A few milliseconds for thousands of pages: tokens and bits are shared with the pages, not copied.
    """
    return PageMap(
        pages=tuple(page_infos(table)),
        page_tokens=table.store.page_tokens,
        is_paged=bool(table.store.shapes),
        open_tokens=tuple(table.open_tokens),
        next_position=table.next_position,
        num_decoded=heat.num_decoded,
        spans=tuple(spans),
        counters=counters,
        attention_pages=attention_pages,
        caught=heat.caught,
    )


def page_infos(table: PageTable) -> list[PageInfo]:
    """Return what is known of the pages of a sequence, in order."""
    pinned = table.pinned_pages()
    return [
        PageInfo(
            number=page.number,
            tier=page.tier,
            tokens=reference.tokens,
            first_position=page.positions[0],
            last_position=page.positions[-1],
            nbytes=page.nbytes,
            heat=page.heat,
            last_access=page.last_access,
            pinned=page in pinned,
            references=page.references,
            bits=page.held_bits().pairs,
            is_on_disk=page not in table.store.pages,
        )
        for reference in table.references
        for page in [reference.page]
    ]


def span_usage(
    table: PageTable, open_nbytes: int, other_nbytes: int, spans: Sequence[TextSpan]
) -> tuple[SpanUsage, ...]:
    """Return what spans of a sequence take. No step of it goes through tokens.

    A token takes a full page's bytes by the tokens that it has room for, however few the sequence has of it.
    The heat of a page is shared out among those that it has. The first page's heat counts for none: models
    attend to it whatever it says.

    Args:
        table: the sequence.
        open_nbytes: bytes of the open tokens, without the room behind them.
        other_nbytes: bytes of what is in no pages, shared out among all tokens.
        spans: by index of the tokens, in order.
    """
    pages = [reference.page for reference in table.references]
    counts = np.array([reference.num_tokens for reference in table.references], dtype=np.float64)
    _, page_of = np.unique(np.array([page.number for page in pages]), return_inverse=True)
    shares = counts / np.bincount(page_of, weights=counts)[page_of]
    heat = [0.0 if page is pages[0] else page.heat for page in pages]
    num_open = len(table.open_tokens)
    edges = np.concatenate([[0.0], np.cumsum([*counts, num_open])])
    of_pages = counts * np.array([page.nbytes for page in pages], dtype=np.float64) / table.store.page_tokens
    nbytes = np.cumsum([0.0, *of_pages, open_nbytes]) + other_nbytes * edges / max(edges[-1], 1)
    heats = np.cumsum([0.0, *(shares * heat), 0.0])
    ends = np.clip([(span.start, span.stop) for span in spans], 0, int(edges[-1])).reshape(-1, 2)
    found = zip(
        spans,
        np.diff(ends, axis=1)[:, 0].tolist(),
        np.diff(np.rint(np.interp(ends, edges, nbytes)), axis=1)[:, 0].tolist(),
        np.diff(np.interp(ends, edges, heats), axis=1)[:, 0].tolist(),
        strict=True,
    )
    return tuple(
        SpanUsage(span.kind, span.key, span.title, count, int(size), share)
        for span, count, size, share in found
    )


def measure_usage(
    references: Sequence[PageReference],
    store: PageStore,
    spec: KVSpec,
    *,
    open_tokens: int,
    nbytes: int,
    attention_pages: int | None,
    caught: float | None,
) -> KVUsage:
    """Return the figures of a sequence whose cache takes `nbytes` in all."""
    pages = {reference.page for reference in references}
    by_tier = Counter[Tier]()
    tier_nbytes = Counter[Tier]()
    held_bits = Counter[tuple[Tier, HeldBits]]()
    for page in pages:
        by_tier[page.tier] += 1
        tier_nbytes[page.tier] += page.nbytes
        held_bits[page.tier, page.held_bits()] += 1
    sealed_nbytes = tier_nbytes.total()
    numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in store.shapes.values())
    held = len(pages) * store.page_tokens * numbers
    requested = _requested_bits(store, spec)
    below = {bits for _, bits in held_bits if (bits.array < requested).any()}
    cold = {bits: count for (tier, bits), count in held_bits.items() if tier is Tier.COLD}
    return KVUsage(
        num_tokens=sum(reference.num_tokens for reference in references) + open_tokens,
        open_tokens=open_tokens,
        hot_pages=by_tier[Tier.HOT],
        warm_pages=by_tier[Tier.WARM],
        cold_pages=by_tier[Tier.COLD],
        hot_nbytes=tier_nbytes[Tier.HOT],
        warm_nbytes=tier_nbytes[Tier.WARM],
        cold_nbytes=tier_nbytes[Tier.COLD],
        nbytes=nbytes,
        effective_bits=8 * sealed_nbytes / held if held else None,
        requested=_mean([requested], [1]) if requested.size else None,
        effective=_mean([bits.array for bits in cold], list(cold.values())) if cold else None,
        num_below=sum(count for (_, bits), count in held_bits.items() if bits in below),
        attention_pages=attention_pages,
        caught=caught,
    )


def _requested_bits(store: PageStore, spec: KVSpec) -> IntArray:
    """Return the bits of the cold tier, keys and values of all heads of all paged layers: `[2, heads]`."""
    pairs = [
        spec.bits(layer, head) for layer, shape in store.shapes.items() for head in range(shape.num_kv_heads)
    ]
    return np.array([[pair.keys for pair in pairs], [pair.values for pair in pairs]])


def _mean(arrays: Sequence[IntArray], counts: Sequence[int]) -> tuple[float, float]:
    """Return the mean bits of keys and of values, of arrays that count so many times."""
    keys, values = np.average([array.mean(axis=1) for array in arrays], axis=0, weights=counts).tolist()
    return keys, values
