"""Taking the figures of a KV cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from engine.kv.page import IntArray, Page
from engine.kv.page_table import PageReference, PageTable
from engine.kv.precision import BitsPair, KVSpec, Tier
from engine.kv.store import PageStore
from engine.kv.usage import KVUsage, PageInfo


def page_infos(table: PageTable) -> list[PageInfo]:
    """Return what is known of the pages of a sequence, in order."""
    return [
        PageInfo(
            number=page.number,
            tier=page.tier,
            num_tokens=reference.num_tokens,
            first_position=page.positions[0],
            last_position=page.positions[-1],
            nbytes=page.nbytes,
            heat=page.heat,
            last_access=page.last_access,
            pinned=table.is_pinned(reference),
            references=page.references,
            bits={layer: _pairs(page, layer) for layer in page.keys},
        )
        for reference in table.references
        for page in [reference.page]
    ]


def _pairs(page: Page, layer: int) -> tuple[BitsPair, ...]:
    bits = zip(page.keys[layer].bits.tolist(), page.values[layer].bits.tolist(), strict=True)
    return tuple(BitsPair(keys, values) for keys, values in bits)


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
    tier_nbytes = {tier: sum(page.nbytes for page in pages if page.tier is tier) for tier in Tier}
    sealed_nbytes = sum(tier_nbytes.values())
    numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in store.shapes.values())
    held = len(pages) * store.page_tokens * numbers
    counts = Counter(page.tier for page in pages)
    requested = _requested_bits(store, spec)
    bits = {page: _held_bits(page) for page in pages}
    cold = [bits[page] for page in pages if page.tier is Tier.COLD]
    return KVUsage(
        num_tokens=sum(reference.num_tokens for reference in references) + open_tokens,
        open_tokens=open_tokens,
        hot_pages=counts[Tier.HOT],
        warm_pages=counts[Tier.WARM],
        cold_pages=counts[Tier.COLD],
        hot_nbytes=tier_nbytes[Tier.HOT],
        warm_nbytes=tier_nbytes[Tier.WARM],
        cold_nbytes=tier_nbytes[Tier.COLD],
        nbytes=nbytes,
        effective_bits=8 * sealed_nbytes / held if held else None,
        requested=_mean(requested) if requested.size else None,
        effective=_mean(np.concatenate(cold, axis=1)) if cold else None,
        num_below=sum(bool((one < requested).any()) for one in bits.values()),
        attention_pages=attention_pages,
        caught=caught,
    )


def _requested_bits(store: PageStore, spec: KVSpec) -> IntArray:
    """Return the bits of the cold tier, keys and values of all heads of all paged layers: `[2, heads]`."""
    pairs = [
        spec.bits(layer, head) for layer, shape in store.shapes.items() for head in range(shape.num_kv_heads)
    ]
    return np.array([[pair.keys for pair in pairs], [pair.values for pair in pairs]])


def _held_bits(page: Page) -> IntArray:
    """Return the bits that a page has, in the order of `_requested_bits`: `[2, heads]`."""
    parts = ([blocks.bits for blocks in part.values()] for part in (page.keys, page.values))
    return np.stack([np.concatenate(part) for part in parts])


def _mean(bits: IntArray) -> tuple[float, float]:
    keys, values = bits.mean(axis=1).tolist()
    return keys, values
