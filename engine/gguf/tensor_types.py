"""The ways in which GGUF files store weights, and how to read those that Octavo supports.

Block layouts are ggml's (ggml-common.h); q is the stored number of a value. Every supported quantization is
`scale * q + bias` over groups of 32 or 16 values, which is also MLX's affine quantization.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import ModelError, UnsupportedModelError

GROUP_SIZE = 32
"""Values that share a scale in MLX, whatever the file's own blocks."""

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

# Typed, because numpy's annotations take a plain int for a wide one.
_ONE, _THREE, _FOUR, _HIGHEST = np.uint8(1), np.uint8(3), np.uint8(4), np.uint8(0x80)


@dataclass(frozen=True)
class Groups:
    """Quantized values: `scale * q + bias`.

    Attributes:
        values: q, uint8, `[rows, groups, group]`.
        scales: float32, `[rows, groups]`.
        biases: float32, `[rows, groups]`.
        bits: bits of q.
    """

    values: Bytes
    scales: Floats
    biases: Floats
    bits: int

    def dequantize(self) -> Floats:
        """Return the values, `[rows, columns]`."""
        plain = self.values.astype(np.float32)
        plain *= self.scales[..., None]
        plain += self.biases[..., None]
        return plain.reshape(len(plain), -1)

    def packed(self) -> npt.NDArray[np.uint32]:
        """Return q as MLX packs it: a stream of `bits` a value, lowest bit first, `[rows, words]`."""
        rows = len(self.values)
        flat = self.values.reshape(rows, -1)
        packed = flat
        if self.bits == 4:
            packed = flat[:, 0::2] | (flat[:, 1::2] << _FOUR)
        elif self.bits != 8:
            bits = np.unpackbits(flat[..., None], axis=-1, count=self.bits, bitorder="little")
            packed = np.packbits(bits.reshape(rows, -1), axis=-1, bitorder="little")
        return np.ascontiguousarray(packed).view("<u4")


@dataclass(frozen=True)
class TensorType:
    """A way of storing weights.

    Attributes:
        name: ggml's name, such as `Q4_1`.
        block_values: values of a block.
        block_nbytes: bytes of a block.
        unpack: turns blocks `[rows, blocks, block_nbytes]` into groups; None where values are plain numbers.
        mlx_bits: bits in which MLX holds it: its own, but 8 for groups of 16, which MLX does not have.
        dtype: numpy's type of plain values; bfloat16 comes as its bits, `<u2`.
    """

    name: str
    block_values: int
    block_nbytes: int
    unpack: Callable[[Bytes], Groups] | None = None
    mlx_bits: int | None = None
    dtype: str | None = None

    @property
    def is_quantized(self) -> bool:
        """Whether values share scales."""
        return self.unpack is not None


def _half(blocks: Bytes, start: int) -> Floats:
    """Return the float16 number at a byte of each block, `[rows, blocks]`."""
    return np.ascontiguousarray(blocks[..., start : start + 2]).view("<f2")[..., 0].astype(np.float32)


def _nibbles(stored: Bytes) -> Bytes:
    """Split bytes `[..., n]` into low nibbles followed by high nibbles, `[..., 2n]`."""
    return np.concatenate([stored & 0xF, stored >> 4], axis=-1)


def _fifth_bits(stored: Bytes) -> Bytes:
    """Return 32 bits of four bytes as 16 and 0, `[..., 32]`."""
    return np.unpackbits(stored, axis=-1, bitorder="little") << _FOUR


def _unpack_q4_0(blocks: Bytes) -> Groups:
    scales = _half(blocks, 0)
    return Groups(_nibbles(blocks[..., 2:]), scales, -8 * scales, 4)


def _unpack_q4_1(blocks: Bytes) -> Groups:
    return Groups(_nibbles(blocks[..., 4:]), _half(blocks, 0), _half(blocks, 2), 4)


def _unpack_q5_0(blocks: Bytes) -> Groups:
    scales = _half(blocks, 0)
    return Groups(_nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6]), scales, -16 * scales, 5)


def _unpack_q5_1(blocks: Bytes) -> Groups:
    values = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return Groups(values, _half(blocks, 0), _half(blocks, 2), 5)


def _unpack_q8_0(blocks: Bytes) -> Groups:
    scales = _half(blocks, 0)
    # The stored numbers are signed: adding 128 is flipping the highest bit.
    return Groups(blocks[..., 2:] ^ _HIGHEST, scales, -128 * scales, 8)


def _k_scales(blocks: Bytes) -> tuple[Floats, Floats]:
    """Return scales and biases of the eight groups in each block of Q4_K and Q5_K, `[rows, groups]`."""
    low, middle, high = blocks[..., 4:8], blocks[..., 8:12], blocks[..., 12:16]
    steps = np.concatenate([low & 63, (high & 0xF) | (low >> 6 << 4)], axis=-1)
    offsets = np.concatenate([middle & 63, (high >> 4) | (middle >> 6 << 4)], axis=-1)
    scales = _half(blocks, 0)[..., None] * steps
    biases = -_half(blocks, 2)[..., None] * offsets
    return scales.reshape(len(blocks), -1), biases.reshape(len(blocks), -1)


def _k_nibbles(stored: Bytes) -> Bytes:
    """Split 128 bytes into eight groups of 32 nibbles, `[rows, blocks, 8, 32]`."""
    return _nibbles(stored.reshape(*stored.shape[:-1], 4, 32)).reshape(*stored.shape[:-1], 8, 32)


def _unpack_q4_k(blocks: Bytes) -> Groups:
    scales, biases = _k_scales(blocks)
    return Groups(_k_nibbles(blocks[..., 16:]).reshape(len(blocks), -1, 32), scales, biases, 4)


def _unpack_q5_k(blocks: Bytes) -> Groups:
    scales, biases = _k_scales(blocks)
    group = np.arange(8, dtype=np.uint8)[:, None]
    fifth = (blocks[..., None, 16:48] >> group & _ONE) << _FOUR
    values = _k_nibbles(blocks[..., 48:]) | fifth
    return Groups(values.reshape(len(blocks), -1, 32), scales, biases, 5)


def _unpack_q6_k(blocks: Bytes) -> Groups:
    low = _nibbles(blocks[..., :128].reshape(*blocks.shape[:-1], 2, 64))
    pair = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = blocks[..., 128:192].reshape(*blocks.shape[:-1], 2, 1, 32) >> pair & _THREE
    values = low | (high << _FOUR).reshape(low.shape)
    steps = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8).astype(np.float32)
    scales = (_half(blocks, 208)[..., None] * steps).reshape(len(blocks), -1)
    return Groups(values.reshape(len(blocks), -1, 16), scales, -32 * scales, 6)


_SUPPORTED = {
    0: TensorType("F32", 1, 4, dtype="<f4"),
    1: TensorType("F16", 1, 2, dtype="<f2"),
    30: TensorType("BF16", 1, 2, dtype="<u2"),
    2: TensorType("Q4_0", 32, 18, _unpack_q4_0, 4),
    3: TensorType("Q4_1", 32, 20, _unpack_q4_1, 4),
    6: TensorType("Q5_0", 32, 22, _unpack_q5_0, 5),
    7: TensorType("Q5_1", 32, 24, _unpack_q5_1, 5),
    8: TensorType("Q8_0", 32, 34, _unpack_q8_0, 8),
    12: TensorType("Q4_K", 256, 144, _unpack_q4_k, 4),
    13: TensorType("Q5_K", 256, 176, _unpack_q5_k, 5),
    14: TensorType("Q6_K", 256, 210, _unpack_q6_k, 8),
}

_REFUSED = {
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
    40: "NVFP4",
    41: "Q1_0",
}

SUPPORTED_NAMES = tuple(kind.name for kind in _SUPPORTED.values())


def tensor_type(type_id: int, tensor: str, path: Path) -> TensorType:
    """Return the way of storing with ggml's number `type_id`; an `UnsupportedModelError` names the others."""
    kind = _SUPPORTED.get(type_id)
    if kind is not None:
        return kind
    if type_id > 255:
        raise ModelError(f"{path.name} is damaged or incomplete. Download or copy it again.")
    name = _REFUSED.get(type_id, f"type {type_id}")
    raise UnsupportedModelError(
        f"{path.name} stores {tensor} as {name}, which Octavo does not read. "
        f"It reads {', '.join(SUPPORTED_NAMES[:-1])} and {SUPPORTED_NAMES[-1]}."
    )


def plain_values(raw: Bytes, kind: TensorType) -> Floats | npt.NDArray[np.float16]:
    """Return plain numbers `[rows, columns]` from rows of bytes; bfloat16 widens to float32."""
    assert kind.dtype is not None
    values = raw.view(kind.dtype)
    if kind.name == "BF16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values
