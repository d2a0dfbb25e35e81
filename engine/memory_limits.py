"""How much of the memory Octavo may plan with."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

RESERVE_NBYTES = 1 << 30
"""Kept free for the rest of the system and for the work arrays of a prefill chunk, unless set otherwise."""
SAFE_SHARE = 0.6
"""The share of the KV budget that a safe context takes: a plan without surprises leaves the rest."""


@dataclass(frozen=True)
class MemoryLimits:
    """What the user allows.

    Attributes:
        most_nbytes: what the whole process may take; None for all that the computer has.
        reserve_nbytes: kept free beside weights and KV cache.
        safe_share: the share of the KV budget that the safe context takes, above 0 and up to 1.
    """

    most_nbytes: int | None = None
    reserve_nbytes: int = RESERVE_NBYTES
    safe_share: float = SAFE_SHARE


def limits_beside(limits: MemoryLimits, taken_nbytes: int) -> MemoryLimits:
    """Return what is left of the limits where the process has taken so many bytes already."""
    if limits.most_nbytes is None:
        return limits
    return dataclasses.replace(limits, most_nbytes=max(0, limits.most_nbytes - taken_nbytes))
