"""What the engine of this process holds in memory now, for whoever watches from another thread.

There is one engine in a process, as MLX's own counters are one. Its thread publishes; any thread reads.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Phase(enum.Enum):
    """What the engine is doing."""

    IDLE = "idle"
    LOAD = "load"
    PREFILL = "prefill"
    DECODE = "decode"
    TRIM = "trim"
    """Memory is being given back: pages go to fewer bits, to disk, or old turns leave the context."""
    PAUSED = "paused"


@dataclass(frozen=True)
class KVBytes:
    """Bytes of keys and values in memory.

    Attributes:
        hot, warm, cold: pages of the conversation in hand by tier, scales and biases included.
        open: its open tokens, free slots, bounds of keys, and layers that are not paged.
        idle: all of the other conversations that are held.
    """

    hot: int = 0
    warm: int = 0
    cold: int = 0
    open: int = 0
    idle: int = 0

    @property
    def total(self) -> int:
        """All of them together."""
        return self.hot + self.warm + self.cold + self.open + self.idle


@dataclass(frozen=True)
class EngineFigures:
    """What the engine holds and does.

    Attributes:
        phase: what it is doing.
        weights_nbytes: bytes of the loaded model's weights, 0 without one.
        kv: bytes of keys and values.
        planned_weights_nbytes: what the plan said of the weights before they were loaded.
        planned_kv_nbytes: what the plan says of the tokens that the conversation in hand has now.
    """

    phase: Phase = Phase.IDLE
    weights_nbytes: int = 0
    kv: KVBytes = field(default_factory=KVBytes)
    planned_weights_nbytes: int = 0
    planned_kv_nbytes: int = 0


_latest = EngineFigures()


def publish(figures: EngineFigures) -> None:
    """Replace the figures; called on the engine's thread."""
    global _latest
    _latest = figures


def latest() -> EngineFigures:
    """Return the figures that were published last; may be called from any thread."""
    return _latest
