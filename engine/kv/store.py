"""The pages of one model: their blocks in pools, shared by all sequences that refer to them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakSet

import mlx.core as mx
import numpy as np

from engine.kv.page import Blocks, IntArray, Page, by_bits
from engine.kv.pool import BATCH_BLOCKS, Part, SlotPool
from engine.kv.precision import KV_BITS, KVSpec, LayerShape, Tier
from engine.kv.words import WordArray

if TYPE_CHECKING:
    from engine.kv.page_table import PageTable

LayerArrays = Callable[[int], tuple[mx.array, mx.array]]
"""Gives a layer's keys `[kv_heads, head_dim, page_tokens]` and values `[kv_heads, page_tokens, head_dim]`."""

PackedBlocks = Callable[
    [int, Part], Iterable[tuple[int, Sequence[tuple[Page, IntArray]], Sequence[mx.array]]]
]
"""Gives a layer's keys or values by precision: bits, the pages and the KV heads of these that have them, and
their blocks as a pool has them."""


class PageStore:
    """Seals, moves and frees pages.

    Attributes:
        shapes: heads and dimensions of each paged layer, by its number in the model.
        page_tokens: tokens of a page.
        pages: all that are referred to.
        abandoned: pages that lost a reference in a finalizer, once for each. That may run on any thread and
            in the middle of anything here, so they are released with the next `seal` or `defragment`.
        tables: those of the sequences.
        version: changes whenever a block moves, so that index arrays over slots are made anew.
    """

    def __init__(self, shapes: Mapping[int, LayerShape], page_tokens: int, group_size: int) -> None:
        self.shapes = dict(shapes)
        self.page_tokens = page_tokens
        self.group_size = group_size
        self.pages: set[Page] = set()
        self.abandoned: deque[Page] = deque()
        self.tables: WeakSet[PageTable] = WeakSet()
        self.version = 0
        self._pools: dict[tuple[int, Part, int], SlotPool] = {}
        self._spec: KVSpec | None = None
        self._bits_of: dict[tuple[Tier, int], dict[Part, IntArray]] = {}
        self._numbers = itertools.count()

    def new_number(self) -> int:
        """Return the number of a page that is about to be."""
        return next(self._numbers)

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
        """Bytes of all pools, free slots and bounds of keys included."""
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
        self._release_abandoned()
        page = Page(self.new_number(), tuple(tokens), tuple(positions), tier)
        for layer in self.shapes:
            for part, array in zip(Part, arrays(layer), strict=True):
                bits = self._bits(spec, tier, layer)[part].copy()
                _of_part(page, part)[layer] = Blocks(bits, self._put(layer, part, bits, array))
                page.nbytes += sum(self.pool(layer, part, each).block_nbytes for each in bits.tolist())
            self._keep_bounds(layer, [page], spec)
        page.note_bits()
        self.pages.add(page)
        self.version += 1
        return page

    def adopt(self, pages: Sequence[Page], blocks: PackedBlocks, num_more: int = 0) -> None:
        """Store the blocks of pages that were outside, as they were in a store of the same shapes.

        Args:
            pages: they have no reference here yet.
            blocks: gives what `words` gave of them.
            num_more: pages that are about to follow.
        """
        self._release_abandoned()
        for page in pages:
            page.nbytes = 0
            page.num_lowered += 1
        for layer, shape in self.shapes.items():
            for part in Part:
                for bits, owners, packed in blocks(layer, part):
                    pool = self.pool(layer, part, bits)
                    slots = np.array(pool.put_packed(packed, num_more * shape.num_kv_heads))
                    for page, heads in owners:
                        held = _of_part(page, part)[layer]
                        held.bits[heads], held.slots[heads] = bits, slots[: len(heads)]
                        page.nbytes += len(heads) * pool.block_nbytes
                        slots = slots[len(heads) :]
        self.pages.update(pages)
        self.version += 1

    def words(self, page: Page, layer: int, part: Part) -> Iterator[tuple[WordArray, ...]]:
        """Yield the bits of each precision's blocks of a page's keys or values, the fewest bits first."""
        held = _of_part(page, part)[layer]
        for bits, heads in by_bits(held.bits):
            yield self.pool(layer, part, bits).words(held.slots[heads])

    def lower_all(
        self, moves: Sequence[tuple[Page, Tier]], spec: KVSpec, check: Callable[[], None] = lambda: None
    ) -> None:
        """Bring pages down to their tiers and to the bits of these, one layer after another.

        What is at fewer bits or in a lower tier already stays there: lost bits come back only by reading the
        text again. Each layer gives its memory back before the next one is begun.

        Args:
            moves: pages and their new tiers; the lowest one of a page that is there twice.
            spec: what bits the tiers mean.
            check: called after each layer. It may raise: the pages are whole then, in their new tiers, with
                the former bits in the layers that were not reached, and going on takes the same pages.
        """
        for page, tier in moves:
            page.tier = max(page.tier, tier, key=list(Tier).index)
        pages = list(dict.fromkeys(page for page, _ in moves))
        try:
            for layer in self.shapes if pages else ():
                self._lower_layer(layer, pages, spec)
                check()
        finally:
            for page in pages:
                page.note_bits()

    def lower_to(self, pages: Sequence[Page], bits: Sequence[IntArray]) -> None:
        """Bring blocks that have more bits down to these, given for each page as in `HeldBits.array`.

        The room that this leaves is not given back, as more pages are about to come.
        """
        start = 0
        for layer, shape in self.shapes.items():
            stop = start + shape.num_kv_heads
            for row, part in enumerate(Part):
                self._lower_part(layer, part, pages, np.stack([each[row, start:stop] for each in bits]))
            start = stop

    def tier_bits(self, spec: KVSpec, tier: Tier) -> IntArray:
        """Return the bits that a tier means, as in `HeldBits.array`."""
        parts = [self._bits(spec, tier, layer) for layer in self.shapes]
        return np.stack([np.concatenate([bits[part] for bits in parts]) for part in Part])

    def _lower_layer(self, layer: int, pages: Sequence[Page], spec: KVSpec) -> None:
        version = self.version
        for part in Part:
            wanted = {tier: self._bits(spec, tier, layer)[part] for tier in Tier}
            self._lower_part(layer, part, pages, np.stack([wanted[page.tier] for page in pages]))
            self._shrink(layer, part)
        self._keep_bounds(layer, pages, spec)
        if self.version != version:
            mx.clear_cache()

    def retain(self, page: Page) -> None:
        """Count one more reference."""
        page.references += 1

    def release(self, page: Page) -> None:
        """Count one reference less and free the page after the last; `defragment` gives the memory back."""
        page.references -= 1
        if page.references:
            return
        for layer in self.shapes:
            for part in Part:
                blocks = _of_part(page, part)[layer]
                for bits, heads in by_bits(blocks.bits):
                    self.pool(layer, part, bits).free(blocks.slots[heads].tolist())
                blocks.slots[:] = -1
        self.pages.remove(page)
        self.version += 1

    def defragment(self) -> None:
        """Give back memory of free slots that is more than a growth step."""
        self._release_abandoned()
        for layer in self.shapes:
            for part in Part:
                self._shrink(layer, part)
        mx.clear_cache()

    def read(self, page: Page, layer: int) -> tuple[mx.array, mx.array]:
        """Return the keys and values of a page in one layer, shaped as `LayerArrays` gives them."""
        return (
            self._get(layer, Part.KEYS, page.keys[layer]),
            self._get(layer, Part.VALUES, page.values[layer]),
        )

    def _release_abandoned(self) -> None:
        while self.abandoned:
            self.release(self.abandoned.popleft())

    def _bits(self, spec: KVSpec, tier: Tier, layer: int) -> dict[Part, IntArray]:
        """Return the bits of a tier, `[kv_heads]` for keys and for values; to be copied, as it keeps them."""
        if spec != self._spec:
            self._spec, self._bits_of = spec, {}
        if (tier, layer) not in self._bits_of:
            pairs = [spec.tier_bits(tier, layer, head) for head in range(self.shapes[layer].num_kv_heads)]
            self._bits_of[tier, layer] = {
                Part.KEYS: np.array([pair.keys for pair in pairs]),
                Part.VALUES: np.array([pair.values for pair in pairs]),
            }
        return self._bits_of[tier, layer]

    def _put(self, layer: int, part: Part, bits: IntArray, blocks: mx.array) -> IntArray:
        slots = np.empty(len(bits), dtype=np.int64)
        for each, heads in by_bits(bits):
            chosen = blocks if len(heads) == len(bits) else blocks[mx.array(heads)]
            slots[heads] = self.pool(layer, part, each).put(chosen)
        return slots

    def _get(self, layer: int, part: Part, blocks: Blocks) -> mx.array:
        groups = list(by_bits(blocks.bits))
        read = [self.pool(layer, part, bits).get(mx.array(blocks.slots[heads])) for bits, heads in groups]
        if len(read) == 1:
            return read[0]
        order = np.argsort(np.concatenate([heads for _, heads in groups]))
        return mx.concatenate(read)[mx.array(order)]

    def _lower_part(self, layer: int, part: Part, pages: Sequence[Page], new: IntArray) -> None:
        """Lower all blocks of pages that have more bits than `new`, `[pages, kv_heads]`, gives them."""
        old = np.stack([_of_part(page, part)[layer].bits for page in pages])
        changes = np.unique(np.stack([old, new])[:, new < old], axis=1)
        for source, target in changes.T.tolist():
            blocks = np.argwhere((old == source) & (new == target)).tolist()
            for start in range(0, len(blocks), BATCH_BLOCKS):
                batch = [(pages[row], head) for row, head in blocks[start : start + BATCH_BLOCKS]]
                self._lower_blocks(layer, part, batch, source, target)

    def _lower_blocks(
        self, layer: int, part: Part, blocks: Sequence[tuple[Page, int]], old: int, new: int
    ) -> None:
        """Move blocks, given by page and KV head, from one precision to a lower one."""
        source, target = self.pool(layer, part, old), self.pool(layer, part, new)
        slots = [int(_of_part(page, part)[layer].slots[head]) for page, head in blocks]
        moved = target.put(source.get(mx.array(slots)))
        for (page, head), slot in zip(blocks, moved, strict=True):
            held = _of_part(page, part)[layer]
            held.bits[head], held.slots[head] = new, slot
            page.num_lowered += 1
            page.nbytes += target.block_nbytes - source.block_nbytes
        source.free(slots)
        self.version += 1

    def _keep_bounds(self, layer: int, pages: Sequence[Page], spec: KVSpec) -> None:
        """Keep the bounds of the keys of pages while there is an attention budget to choose pages for."""
        pools = [pool for (at, part, _), pool in self._pools.items() if (at, part) == (layer, Part.KEYS)]
        for pool in pools:
            if spec.attention_pages is None:
                pool.drop_bounds()
                continue
            keys = [page.keys[layer] for page in pages]
            pool.keep_bounds(np.concatenate([one.slots[one.bits == pool.bits] for one in keys]))

    def _shrink(self, layer: int, part: Part) -> None:
        """Close the gaps in a layer's pools and tell the pages where their blocks are now."""
        for bits in KV_BITS:
            pool = self._pools.get((layer, part, bits))
            moved = None if pool is None else pool.shrink()
            if moved is None:
                continue
            for page in self.pages:
                blocks = _of_part(page, part)[layer]
                here = blocks.bits == bits
                blocks.slots[here] = moved[blocks.slots[here]]
            self.version += 1


def _of_part(page: Page, part: Part) -> dict[int, Blocks]:
    return page.keys if part is Part.KEYS else page.values
