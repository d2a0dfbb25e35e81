"""The least and the largest key of each channel, kept for the blocks of a pool of keys."""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx
import numpy as np

from engine.kv.page import BoolArray, IntArray


@dataclass(eq=False)
class KeyBounds:
    """Bounds of the blocks in the slots of a pool, as far as somebody asked for them.

    Attributes:
        arrays: `(least, largest)`, each `[slots, head_dim]` in the activation type, or nothing at all.
        known: marks the slots whose bounds these are, `[slots]`.
    """

    arrays: tuple[mx.array, ...] = ()
    known: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def nbytes(self) -> int:
        """Bytes of all slots, unknown ones included."""
        return sum(array.nbytes for array in self.arrays)

    def with_room(self, num_slots: int, head_dim: int, dtype: mx.Dtype) -> KeyBounds:
        """Return them with so many slots at least."""
        missing = num_slots - len(self.known)
        if missing <= 0:
            return self
        room = tuple(mx.zeros((missing, head_dim), dtype=dtype) for _ in range(2))
        if self.arrays:
            room = tuple(mx.concatenate(list(pair)) for pair in zip(self.arrays, room, strict=True))
        return KeyBounds(room, np.concatenate([self.known, np.zeros(missing, dtype=np.bool_)]))

    def unknown(self, slots: IntArray) -> IntArray:
        """Return those of the slots whose bounds are not known."""
        within = slots < len(self.known)
        known = np.zeros(len(slots), dtype=np.bool_)
        known[within] = self.known[slots[within]]
        return slots[~known]

    def keep(self, slots: IntArray, blocks: mx.array) -> None:
        """Note the bounds of blocks, `[slots, head_dim, page_tokens]`, in slots that there is room for."""
        index = mx.array(slots)
        for array, found in zip(self.arrays, (blocks.min(axis=-1), blocks.max(axis=-1)), strict=True):
            array[index] = found
        mx.eval(self.arrays)
        self.known[slots] = True

    def forget(self, slots: IntArray) -> None:
        """Note that these slots hold other blocks, or none, from now on."""
        self.known[slots[slots < len(self.known)]] = False

    def only(self, slots: IntArray) -> KeyBounds:
        """Return the bounds of these slots, as of the first ones."""
        slots = slots[slots < len(self.known)]  # in order, so that no gap arises
        if not self.known[slots].any():
            return KeyBounds()
        index = mx.array(slots)
        arrays = tuple(array[index] for array in self.arrays)
        mx.eval(arrays)
        return KeyBounds(arrays, self.known[slots])
