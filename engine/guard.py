"""When memory grows short: what is given up, in which order, and when it comes back."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class GuardStep(enum.IntEnum):
    """The ladder, from what nobody notices to what everybody does. A higher step includes the lower ones."""

    NONE = 0
    CLEAR_CACHE = 1
    """MLX's free buffers go back to the system."""
    LOWER_TIERS = 2
    """Hot and warm pages go to the bits of the settings early."""
    SPILL_IDLE = 3
    """Pages of conversations that are not being answered go to disk."""
    SMALLER_CHUNKS = 4
    """A prompt is read in smaller pieces, which need less room to work in."""
    TRIM = 5
    """The oldest turns leave the context, where the profile allows that."""
    PAUSE = 6
    """The reply waits until there is memory again or the user decides."""


@dataclass(frozen=True)
class GuardAction:
    """A step of the ladder that was taken, or taken back.

    Attributes:
        step: which.
        is_end: whether it ended: chunks have their size again, the reply goes on.
        reason: the pressure in words, such as `swap grows by 40 MB a second`.
        sentence: what was done, for people, with its figures.
        freed_nbytes: bytes of keys and values, or of MLX's free buffers, that this gave back.
    """

    step: GuardStep
    is_end: bool
    reason: str
    sentence: str
    freed_nbytes: int = 0
