"""How many bits the KV cache spends on a value."""

from __future__ import annotations

import enum

from engine.errors import OctavoError

GROUP_SIZES = (64, 32)
"""Values that share one scale, in order of preference; a head dim must be a multiple of one of them."""


class KVBits(enum.IntEnum):
    """Bits of a cached key or value; 16 means the model's own activation type."""

    BITS_16 = 16
    BITS_8 = 8
    BITS_4 = 4

    @classmethod
    def parse(cls, value: str | int) -> KVBits:
        """Return the precision for `16`, `8` or `4`; anything else raises an `OctavoError` that says so."""
        try:
            return cls(int(value))
        except ValueError:
            allowed = ", ".join(str(int(bits)) for bits in cls)
            raise OctavoError(f"{value!r} is no KV precision; choose one of {allowed} bits.") from None


def group_size_for(head_dim: int) -> int | None:
    """Return the quantization group for heads of `head_dim` values, None where none divides it."""
    return next((size for size in GROUP_SIZES if head_dim % size == 0), None)
