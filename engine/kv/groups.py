"""Index arrays over a sequence's pages: what attention in one layer reads, and where it lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import mlx.core as mx
import numpy as np

from engine.kv.page import Blocks, IntArray
from engine.kv.page_table import PageReference
from engine.kv.pool import Part, SlotPool
from engine.kv.store import PageStore

MASKED = -1e30
"""Added to the score of a slot that holds no token: far below any score, and no infinity to subtract."""


@dataclass(frozen=True, eq=False)
class PageGroup:
    """Pages whose keys, and whose values, have the same precision in the same heads of one layer.

    Attributes:
        heads: the KV heads, `[heads]`.
        pages: indices of the pages in the page table, `[pages]`.
        keys: the pool that the keys lie in.
        values: the pool that the values lie in.
        key_slots: `[heads, pages]`.
        value_slots: `[heads, pages]`.
        query_heads: `[heads, 1]`, the KV head of each row of the slots.
        mask: what to add to the scores, `[pages, 1, page_tokens]`, None where all slots hold tokens.
        is_limited: whether there are more pages than decode may read.
    """

    heads: IntArray
    pages: IntArray
    keys: SlotPool
    values: SlotPool
    key_slots: mx.array
    value_slots: mx.array
    query_heads: mx.array
    mask: mx.array | None
    is_limited: bool

    @cached_property
    def bounds(self) -> tuple[mx.array, mx.array] | None:
        """The least and the largest of each channel of the keys, each `[heads, head_dim, pages]`.

        Only where there are more pages than decode may read, and taken when decode first asks for them:
        prefill does not.
        """
        if not self.is_limited:
            return None
        least, largest = self.keys.bounds(self.key_slots)
        return least.swapaxes(1, 2), largest.swapaxes(1, 2)

    @property
    def taken_bounds(self) -> tuple[mx.array, ...]:
        """The bounds if decode has asked for them: a copy, which takes memory beside that of the pages."""
        return self.__dict__.get("bounds") or ()


def group_pages(
    store: PageStore, layer: int, references: Sequence[PageReference], attention_pages: int | None
) -> list[PageGroup]:
    """Sort the pages of a sequence by their precision in one layer.

    Args:
        store: where the pages lie.
        layer: the layer's number in the model.
        references: the sequence's pages, in order.
        attention_pages: how many pages of a group decode may read; larger groups have bounds.
    """
    if not references:
        return []
    keys = [reference.page.keys[layer] for reference in references]
    values = [reference.page.values[layer] for reference in references]
    key_bits, key_slots = _stacked(keys)
    value_bits, value_slots = _stacked(values)
    groups = []
    for key, value, heads, pages in _same_precision(key_bits, value_bits):
        groups.append(
            PageGroup(
                heads=heads,
                pages=pages,
                keys=store.pool(layer, Part.KEYS, key),
                values=store.pool(layer, Part.VALUES, value),
                key_slots=mx.array(key_slots[np.ix_(pages, heads)].T.astype(np.uint32)),
                value_slots=mx.array(value_slots[np.ix_(pages, heads)].T.astype(np.uint32)),
                query_heads=mx.array(heads[:, None].astype(np.uint32)),
                mask=_mask([references[page] for page in pages], store.page_tokens),
                is_limited=attention_pages is not None and len(pages) > attention_pages,
            )
        )
    return groups


def _stacked(blocks: Sequence[Blocks]) -> tuple[IntArray, IntArray]:
    """Return the bits and the slots of pages, each `[pages, kv_heads]`."""
    bits, slots = np.concatenate([one.bits for one in blocks]), np.concatenate([one.slots for one in blocks])
    return bits.reshape(len(blocks), -1), slots.reshape(len(blocks), -1)


def _same_precision(
    key_bits: IntArray, value_bits: IntArray
) -> Iterator[tuple[int, int, IntArray, IntArray]]:
    """Yield bits of keys and of values, and the heads and the pages that have just these."""
    pairs = key_bits * 32 + value_bits
    for pair in np.unique(pairs):
        by_pages: dict[bytes, list[int]] = {}
        for head in range(pairs.shape[1]):
            by_pages.setdefault((pairs[:, head] == pair).tobytes(), []).append(head)
        for marks, heads in by_pages.items():
            pages = np.flatnonzero(np.frombuffer(marks, dtype=np.bool_))
            if len(pages):
                yield int(pair) // 32, int(pair) % 32, np.array(heads), pages


def _mask(references: Sequence[PageReference], page_tokens: int) -> mx.array | None:
    if all(reference.num_tokens == page_tokens for reference in references):
        return None
    mask = np.full((len(references), 1, page_tokens), MASKED, dtype=np.float32)
    for row, reference in zip(mask, references, strict=True):
        row[0, : len(reference.valid)][reference.valid] = 0
    return mx.array(mask)
