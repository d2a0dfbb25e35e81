"""The pages of one model: their blocks in pools, shared by all sequences that refer to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import mlx.core as mx
import numpy as np

from engine.kv.page import Blocks, IntArray, Page
from engine.kv.pool import Part, SlotPool
from engine.kv.precision import KVSpec, LayerShape, Tier

LayerArrays = Callable[[int], tuple[mx.array, mx.array]]
"""Gives a layer's keys `[kv_heads, head_dim, page_tokens]` and values `[kv_heads, page_tokens, head_dim]`."""


class PageStore:
    """Seals, moves and frees pages.

    Attributes:
        shapes: heads and dimensions of each paged layer, by its number in the model.
        page_tokens: tokens of a page.
        pages: all that are referred to.
        version: changes whenever a block moves, so that index arrays over slots are made anew.
    """

    def __init__(self, shapes: Mapping[int, LayerShape], page_tokens: int, group_size: int) -> None:
        self.shapes = dict(shapes)
        self.page_tokens = page_tokens
        self.group_size = group_size
        self.pages: set[Page] = set()
        self.version = 0
        self._pools: dict[tuple[int, Part, int], SlotPool] = {}
        self._numbers = itertools.count()

    def pool(self, layer: int, part: Part, bits: int) -> SlotPool:
        """Return the pool of a layer's keys or values at one precision; a new one is empty."""
        key = (layer, part, bits)
        if key not in self._pools:
            shape = self.shapes[layer]
            dim = shape.key_dim if part is Part.KEYS else shape.value_dim
            self._pools[key] = SlotPool(part, bits, dim, self.group_size, shape.num_kv_heads)
        return self._pools[key]

    @property
    def nbytes(self) -> int:
        """Bytes of all pools, free slots included."""
        return sum(pool.nbytes for pool in self._pools.values())

    def seal(
        self, tokens: Sequence[int], positions: Sequence[int], arrays: LayerArrays, tier: Tier, spec: KVSpec
    ) -> Page:
        """Store a page, layer by layer so that one layer's copy exists at a time. It has no reference yet.

        Args:
            tokens: at most `page_tokens` ids.
            positions: of these tokens.
            arrays: gives each layer's keys and values, padded to a whole page.
            tier: where the page starts.
            spec: what bits that means.
        """
        page = Page(next(self._numbers), tuple(tokens), tuple(positions), tier)
        for layer in self.shapes:
            keys, values = arrays(layer)
            key_bits, value_bits = self._bits(spec, tier, layer)
            page.keys[layer] = Blocks(key_bits, self._put(layer, Part.KEYS, key_bits, keys))
            page.values[layer] = Blocks(value_bits, self._put(layer, Part.VALUES, value_bits, values))
        self.pages.add(page)
        self._changed(page)
        return page

    def lower(self, page: Page, tier: Tier, spec: KVSpec) -> bool:
        """Bring a page down to a tier and to that tier's bits; return whether any block changed.

        What is at fewer bits or in a lower tier already stays there: lost bits come back only by reading the
        text again.
        """
        moved = False
        for layer in self.shapes:
            wanted = self._bits(spec, tier, layer)
            for part, blocks, bits in zip(Part, (page.keys[layer], page.values[layer]), wanted, strict=True):
                moved |= self._lower_blocks(layer, part, blocks, bits)
        page.tier = max(page.tier, tier, key=list(Tier).index)  # a table may have it twice, in two tiers
        if moved:
            self._changed(page)
        return moved

    def retain(self, page: Page) -> None:
        """Count one more reference."""
        page.references += 1

    def release(self, page: Page) -> None:
        """Count one reference less and free the page after the last; `defragment` gives the memory back."""
        page.references -= 1
        if page.references:
            return
        for layer in self.shapes:
            for part, blocks in zip(Part, (page.keys[layer], page.values[layer]), strict=True):
                self._free(layer, part, blocks.bits, blocks.slots)
        self.pages.remove(page)
        self.version += 1

    def defragment(self) -> None:
        """Give back memory of free slots that is more than a growth step."""
        for (layer, part, bits), pool in self._pools.items():
            if moved := pool.shrink():
                self.version += 1
                for page in self.pages:
                    blocks = (page.keys if part is Part.KEYS else page.values)[layer]
                    here = blocks.bits == bits
                    blocks.slots[here] = [moved.get(slot, slot) for slot in blocks.slots[here].tolist()]
        mx.clear_cache()

    def read(self, page: Page, layer: int) -> tuple[mx.array, mx.array]:
        """Return the keys and values of a page in one layer, shaped as `LayerArrays` gives them."""
        return (
            self._get(layer, Part.KEYS, page.keys[layer]),
            self._get(layer, Part.VALUES, page.values[layer]),
        )

    def _bits(self, spec: KVSpec, tier: Tier, layer: int) -> tuple[IntArray, IntArray]:
        pairs = [spec.tier_bits(tier, layer, head) for head in range(self.shapes[layer].num_kv_heads)]
        return np.array([pair.keys for pair in pairs]), np.array([pair.values for pair in pairs])

    def _put(self, layer: int, part: Part, bits: IntArray, blocks: mx.array) -> IntArray:
        slots = np.empty(len(bits), dtype=np.int64)
        for each in np.unique(bits):
            heads = np.flatnonzero(bits == each)
            chosen = blocks if len(heads) == len(bits) else blocks[mx.array(heads)]
            slots[heads] = self.pool(layer, part, int(each)).put(chosen)
        return slots

    def _get(self, layer: int, part: Part, blocks: Blocks) -> mx.array:
        read = [
            self.pool(layer, part, bits).get(mx.array([slot]))
            for bits, slot in zip(blocks.bits.tolist(), blocks.slots.tolist(), strict=True)
        ]
        return mx.concatenate(read)

    def _lower_blocks(self, layer: int, part: Part, blocks: Blocks, bits: IntArray) -> bool:
        heads = np.flatnonzero(bits < blocks.bits)
        if not len(heads):
            return False
        old = Blocks(blocks.bits[heads], blocks.slots[heads])
        blocks.slots[heads] = self._put(layer, part, bits[heads], self._get(layer, part, old))
        blocks.bits[heads] = bits[heads]
        self._free(layer, part, old.bits, old.slots)
        return True

    def _free(self, layer: int, part: Part, bits: IntArray, slots: IntArray) -> None:
        for each in np.unique(bits):
            self.pool(layer, part, int(each)).free(slots[bits == each].tolist())

    def _changed(self, page: Page) -> None:
        """Count a page's bytes anew after its blocks moved."""
        self.version += 1
        page.nbytes = sum(
            self.pool(layer, part, bits).block_nbytes
            for part, by_layer in zip(Part, (page.keys, page.values), strict=True)
            for layer, blocks in by_layer.items()
            for bits in blocks.bits.tolist()
        )
