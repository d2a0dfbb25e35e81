"""Slots for the blocks of pages: one pool for each layer, each of keys and values, and each precision.

A block is what one KV head has of one page. Blocks of keys are stored transposed, `[head_dim, page_tokens]`,
and quantized per channel, in groups along the tokens. Blocks of values are `[page_tokens, head_dim]`, rotated
by Hadamard matrices, and quantized per token. Both are affine, with MLX's own packing, so that
`mx.gather_qmm` reads them where they lie.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from engine.kv.bounds import KeyBounds
from engine.kv.page import IntArray
from engine.kv.precision import padded_dim, value_group
from engine.kv.room import pool_growth
from engine.kv.words import WordArray, as_words

BATCH_BLOCKS = 64
"""Blocks that are unpacked at a time where many are gone through."""


class Part(enum.Enum):
    """Which half of the cache."""

    KEYS = "keys"
    VALUES = "values"


class SlotPool:
    """Blocks of one layer's keys or values at one precision.

    Attributes:
        part: keys or values.
        bits: 16 for the activation type as it is, else the bits of the affine format.
        arrays: `(blocks,)` at 16 bits, else `(packed, scales, biases)`; the first axis is the slot. Empty
            while the pool has no slots.
    """

    def __init__(self, part: Part, bits: int, head_dim: int, group_size: int, page_blocks: int) -> None:
        self.part = part
        self.bits = bits
        self.arrays: tuple[mx.array, ...] = ()
        self._head_dim = head_dim
        self._page_blocks = page_blocks
        self._free: list[int] = []
        self._num_slots = 0
        self._bounds = KeyBounds()
        self.group_size = value_group(head_dim, group_size) if part is Part.VALUES else group_size

    @property
    def is_quantized(self) -> bool:
        """Whether the blocks are packed."""
        return self.bits < 16

    @property
    def activation_type(self) -> mx.Dtype:
        """The type of blocks that are not packed, and of scales; there must be slots."""
        return self.arrays[-1].dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all slots, free ones included, and of the bounds of keys."""
        return self._blocks_nbytes + self._bounds.nbytes

    @property
    def _blocks_nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    @property
    def block_nbytes(self) -> int:
        """Bytes of one block, scales and biases included, bounds not."""
        return self._blocks_nbytes // self._num_slots if self._num_slots else 0

    @property
    def num_free(self) -> int:
        """Slots that hold nothing."""
        return len(self._free)

    @property
    def growth(self) -> int:
        """Slots that the pool grows by; it never has more free ones than that for long."""
        return pool_growth(self._num_slots - len(self._free), self._page_blocks)

    def put(self, blocks: mx.array) -> list[int]:
        """Store blocks, `[blocks, rows, columns]` in the activation type, and return their slots."""
        return self.put_packed(self._encode(blocks))

    def put_packed(self, encoded: Sequence[mx.array], num_more: int = 0) -> list[int]:
        """Store blocks as `packed` gives them and return their slots.

        Where `num_more` are about to follow, the pool at most doubles for them, so that it grows few times.
        """
        num_blocks = encoded[0].shape[0]
        missing = num_blocks - len(self._free)
        if missing > 0:
            room = missing + min(num_more, self._num_slots + num_blocks)
            self._grow(max(room, self.growth), encoded)
        slots = [self._free.pop() for _ in range(num_blocks)]
        in_a_row = slice(slots[0], slots[0] + num_blocks)
        # a slice is written ten times as fast as single slots
        index = in_a_row if slots == list(range(in_a_row.start, in_a_row.stop)) else mx.array(slots)
        for array, new in zip(self.arrays, encoded, strict=True):
            array[index] = new
        mx.eval(self.arrays)
        return slots

    def packed(self, slots: mx.array) -> tuple[mx.array, ...]:
        """Return blocks as they lie, shaped as `arrays`."""
        return tuple(array[slots] for array in self.arrays)

    def words(self, slots: IntArray) -> tuple[WordArray, ...]:
        """Return the bits of blocks as they lie, shaped as `arrays`."""
        return tuple(as_words(array)[slots] for array in self.arrays)

    def get(self, slots: mx.array) -> mx.array:
        """Return blocks in the activation type: `[*slots.shape, rows, columns]`, for slots of any shape."""
        return self.decoded(self.unpacked(slots))

    def unpacked(self, slots: mx.array) -> mx.array:
        """Return blocks as `get` does, but values as they are stored: rotated and padded."""
        taken = self.packed(slots)
        if not self.is_quantized:
            return taken[0]
        packed, scales, biases = taken
        return mx.dequantize(packed, scales, biases, group_size=self.group_size, bits=self.bits)

    def decoded(self, values: mx.array) -> mx.array:
        """Undo the rotation and padding of values or sums of values, `[..., head_dim]`. Keys have none."""
        if self.part is Part.KEYS or not self.is_quantized:
            return values
        return rotated(values[..., : self._head_dim])

    def matmul(self, left: mx.array, slots: mx.array, left_indices: mx.array | None = None) -> mx.array:
        """Multiply `left` with the blocks in `slots`, reading them where they lie.

        Values come out rotated and padded, as they are stored; `decoded` undoes that, once for all pages.

        Args:
            left: `[..., m, rows]`.
            slots: which block for each product, broadcast against the leading axes of `left`.
            left_indices: which of the flattened leading axes of `left` for each product.

        Returns: `[*slots.shape, m, columns]`.
        """
        if not self.is_quantized:
            return mx.gather_mm(left, self.arrays[0], lhs_indices=left_indices, rhs_indices=slots)
        packed, scales, biases = self.arrays
        return mx.gather_qmm(
            left,
            packed,
            scales,
            biases,
            lhs_indices=left_indices,
            rhs_indices=slots,
            transpose=False,
            group_size=self.group_size,
            bits=self.bits,
        )

    def bounds(self, slots: mx.array) -> tuple[mx.array, mx.array]:
        """Return the least and the largest key of each channel: each `[*slots.shape, head_dim]`.

        Nothing is computed of blocks whose bounds were kept.
        """
        self.keep_bounds(np.array(slots, dtype=np.int64).ravel())
        least, largest = self._bounds.arrays
        return least[slots], largest[slots]

    def keep_bounds(self, slots: IntArray) -> None:
        """Find the bounds of these blocks as they are packed, where they are not known, and keep them."""
        unknown = self._bounds.unknown(slots)
        for start in range(0, len(unknown), BATCH_BLOCKS):
            batch = unknown[start : start + BATCH_BLOCKS]
            blocks = self.get(mx.array(batch))
            self._bounds = self._bounds.with_room(self._num_slots, self._head_dim, blocks.dtype)
            self._bounds.keep(batch, blocks)

    def drop_bounds(self) -> None:
        """Give back the memory of the bounds, which nobody reads any more."""
        self._bounds = KeyBounds()

    def free(self, slots: Sequence[int]) -> None:
        """Take blocks back; `shrink` gives their memory back."""
        self._free.extend(slots)
        self._bounds.forget(np.array(slots, dtype=np.int64))

    def shrink(self) -> IntArray | None:
        """Close the gaps when there are more free slots than a growth step, or no others.

        Nothing has changed when the device fails on the way.

        Returns: the new slot of each old one, `[slots]`, -1 for free ones; None where no block moved.
        """
        if len(self._free) <= self.growth and len(self._free) < self._num_slots:
            return None
        is_used = np.ones(self._num_slots, dtype=np.bool_)
        is_used[self._free] = False
        used = np.flatnonzero(is_used)
        order = mx.array(used)
        arrays = tuple(array[order] for array in self.arrays) if len(used) else ()
        mx.eval(arrays)
        self._bounds = self._bounds.only(used)
        self.arrays, self._num_slots, self._free = arrays, len(used), []
        if is_used[: len(used)].all():
            return None
        return np.where(is_used, np.cumsum(is_used) - 1, -1)

    def _encode(self, blocks: mx.array) -> tuple[mx.array, ...]:
        if not self.is_quantized:
            return (blocks,)
        if self.part is Part.VALUES:
            surplus = padded_dim(self._head_dim, self.group_size) - self._head_dim
            blocks = mx.pad(rotated(blocks), [(0, 0), (0, 0), (0, surplus)])
        packed, scales, biases = mx.quantize(blocks, group_size=self.group_size, bits=self.bits)
        return packed, scales, biases

    def _grow(self, num_slots: int, like: Sequence[mx.array]) -> None:
        """Add room for `num_slots` blocks shaped and typed as those in `like`."""
        if self.arrays:
            room = [mx.pad(array, [(0, num_slots), (0, 0), (0, 0)]) for array in self.arrays]
        else:
            room = [mx.zeros((num_slots, *array.shape[1:]), dtype=array.dtype) for array in like]
        mx.eval(room)
        self.arrays = tuple(room)
        self._free.extend(range(self._num_slots + num_slots - 1, self._num_slots - 1, -1))
        self._num_slots += num_slots


def packed_shapes(
    part: Part, bits: int, head_dim: int, page_tokens: int, group_size: int
) -> list[tuple[int, int]]:
    """Return the shapes of one block in `SlotPool.arrays`: `(rows, columns)` of each."""
    rows, columns, group = head_dim, page_tokens, group_size
    if part is Part.VALUES:
        group = value_group(head_dim, group_size)
        rows, columns = page_tokens, head_dim if bits == 16 else padded_dim(head_dim, group_size)
    if bits == 16:
        return [(rows, columns)]
    return [(rows, columns * bits // 32), (rows, columns // group), (rows, columns // group)]


def rotated(values: mx.array) -> mx.array:
    """Rotate each `[..., head_dim]` by the Hadamard matrix of the largest power of two that divides the head.

    In blocks where the head is no such power itself. Doing it again undoes it, as these matrices are
    symmetric, which MLX's of 20 and 28 rows are not.
    """
    size = values.shape[-1] & -values.shape[-1]
    return mx.hadamard_transform(mx.unflatten(values, -1, (-1, size))).flatten(-2)
