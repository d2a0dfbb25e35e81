"""How many bits the KV cache spends on a value."""

from __future__ import annotations

import enum

from engine.errors import OctavoError


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
