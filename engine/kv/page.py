"""Pages: a fixed number of tokens of one sequence, in all layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from engine.kv.lineage import chain_key
from engine.kv.precision import BitsPair, Tier

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def still_marked(marks: BoolArray, kept: BoolArray) -> BoolArray:
    """Return marks, `[tokens]`, without those that `kept`, `[marks]`, takes away."""
    rest = marks.copy()
    rest[marks] = kept
    return rest


def by_bits(bits: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield each precision that heads have, `[kv_heads]`, and these heads."""
    for each in np.unique(bits).tolist():
        yield each, np.flatnonzero(bits == each)


@dataclass
class Blocks:
    """Where one layer's keys, or its values, of a page lie: bits and slot for each KV head, `[kv_heads]`."""

    bits: IntArray
    slots: IntArray


@dataclass(frozen=True, eq=False)
class HeldBits:
    """The bits of all blocks of a page. Pages with the same bits share one.

    Attributes:
        pairs: of each layer's KV heads, by the layer's number.
        array: those of the keys, then those of the values, `[2, heads of all layers]`.
    """

    pairs: Mapping[int, tuple[BitsPair, ...]]
    array: IntArray


@dataclass(eq=False)
class Page:
    """Tokens that were sealed together. Its text never changes; its precision only goes down.

    While its keys and values are outside, it has the bits that they had, and no slots.

    Attributes:
        number: counts the pages of a store, never used twice.
        tokens: the token ids, at most a page's worth.
        positions: the position of each token that its keys were rotated to.
        tier: which precision it is meant to have.
        keys: by layer number.
        values: by layer number.
        nbytes: of all its blocks, scales and biases included.
        heat: moving average of the attention mass that this page received, 0 to 1.
        last_access: the decoded token, counted by the cache, at which it last got a share of note.
        references: how many places in page tables refer to it.
        num_lowered: how often a block of it lost bits.
        parent: the chain key of the page that it was read behind, empty for the first one.
        salt: of its sequence when it was sealed, empty for one that was unbroken.
        path: the bits that its blocks had one after another, each as in `HeldBits.array`.
        put_bits: mean bits with which a store of pages was last given just this content, or gave it; None for
            never. Another page with the same key was read at another time, maybe at another precision.
    """

    number: int
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    tier: Tier
    keys: dict[int, Blocks] = field(default_factory=dict)
    values: dict[int, Blocks] = field(default_factory=dict)
    nbytes: int = 0
    heat: float = 0.0
    last_access: int = 0
    references: int = 0
    num_lowered: int = 0
    parent: bytes = b""
    salt: bytes = b""
    path: list[IntArray] = field(default_factory=list)
    put_bits: float | None = None
    _bits: tuple[int, HeldBits] | None = None

    @cached_property
    def chain(self) -> bytes:
        """Its chain key."""
        return chain_key(self.parent, self.salt, self.positions[0], self.tokens)

    def note_bits(self) -> None:
        """Take note of the bits that its blocks have now."""
        bits = self.held_bits().array
        if not self.path or not np.array_equal(self.path[-1], bits):
            self.path.append(bits)

    def held_bits(self) -> HeldBits:
        """Return the bits of all blocks; taken anew only after some have changed."""
        if self._bits is None or self._bits[0] != self.num_lowered:
            layers = tuple((layer, len(blocks.bits)) for layer, blocks in self.keys.items())
            rows = [*self.keys.values(), *self.values.values()]
            packed = b"".join([blocks.bits.tobytes() for blocks in rows])
            self._bits = self.num_lowered, _held_bits(layers, packed)
        return self._bits[1]

    @property
    def is_exact(self) -> bool:
        """Whether all of it is held at 16 bits."""
        return all((blocks.bits == 16).all() for part in (self.keys, self.values) for blocks in part.values())


@lru_cache(maxsize=256)
def _held_bits(layers: tuple[tuple[int, int], ...], packed: bytes) -> HeldBits:
    """Return the bits of layers, given by number and KV heads, from those of all blocks, keys first."""
    array = np.frombuffer(packed, dtype=np.int64).reshape(2, -1)
    pairs, start = {}, 0
    for layer, num_heads in layers:
        heads = array[:, start : start + num_heads].T.tolist()
        pairs[layer] = tuple(BitsPair(keys, values) for keys, values in heads)
        start += num_heads
    return HeldBits(pairs, array)
