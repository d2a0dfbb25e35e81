"""Pages of its own for a sequence that is to take bits from pages which another conversation reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import mlx.core as mx
import numpy as np

from engine.kv.page import Blocks, IntArray, Page, by_bits
from engine.kv.page_table import PageReference, PageTable
from engine.kv.pool import Part
from engine.kv.precision import KVSpec, Tier
from engine.kv.store import PageStore

Moves = Sequence[tuple[Page, Tier]]
"""Pages, and the tiers that they are to go down to."""


def parted(table: PageTable, moves: Moves, spec: KVSpec) -> Moves:
    """Return moves that take no bits from other conversations: of their pages, copies that the table has now.

    Args:
        table: whose pages are moved.
        moves: what is to be done to them.
        spec: what bits the tiers mean.
    """
    shared = table.pages_of_others()
    lowered = {page for page, tier in moves if page in shared and _loses_bits(table.store, page, tier, spec)}
    if not lowered:
        return moves
    copies = {page: _copied(table.store, page) for page in lowered}
    table.set_references(
        [PageReference(copies.get(one.page, one.page), one.valid) for one in table.references]
    )
    return [(copies.get(page, page), tier) for page, tier in moves]


def _loses_bits(store: PageStore, page: Page, tier: Tier, spec: KVSpec) -> bool:
    lowest = max(page.tier, tier, key=list(Tier).index)
    return bool((page.held_bits().array > store.tier_bits(spec, lowest)).any())


def _copied(store: PageStore, page: Page) -> Page:
    """Return a page of its own with the same tokens and blocks; it has no reference yet."""
    copy = dataclasses.replace(
        page,
        number=store.new_number(),
        keys=_unplaced(page.keys),
        values=_unplaced(page.values),
        references=0,
        path=list(page.path),
    )

    def blocks(
        layer: int, part: Part
    ) -> Iterator[tuple[int, list[tuple[Page, IntArray]], tuple[mx.array, ...]]]:
        held = (page.keys if part is Part.KEYS else page.values)[layer]
        for bits, heads in by_bits(held.bits):
            packed = store.pool(layer, part, bits).packed(mx.array(held.slots[heads]))
            mx.eval(packed)  # the pool is about to be written
            yield bits, [(copy, heads)], packed

    store.adopt([copy], blocks)
    return copy


def _unplaced(blocks: dict[int, Blocks]) -> dict[int, Blocks]:
    return {layer: Blocks(one.bits.copy(), np.full_like(one.slots, -1)) for layer, one in blocks.items()}
