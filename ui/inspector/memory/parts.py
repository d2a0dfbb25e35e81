"""What the memory of this process consists of, from the bottom of the stack to its top."""

from __future__ import annotations

import enum

from engine.figures import Phase
from engine.memory import MemorySample


class Part(enum.Enum):
    """A part of the process's memory: its name for people and its colour's role."""

    WEIGHTS = ("Weights", "chart_weights")
    COLD = ("KV cold", "tier_cold")
    WARM = ("KV warm", "tier_warm")
    HOT = ("KV hot", "tier_hot")
    OPEN = ("KV open", "chart_open")
    IDLE = ("Idle conversations", "chart_idle")
    CACHE = ("MLX free buffers", "chart_cache")
    REST = ("Rest of Octavo", "chart_rest")

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.value[0]

    @property
    def role(self) -> str:
        """The role of its colour in `Palette`."""
        return self.value[1]


TIPS = {
    Part.WEIGHTS: "The model itself",
    Part.COLD: "What the model remembers of older text: keys and values at the bits that you set",
    Part.WARM: "What the model remembers of newer text: keys and values at 8 bits or more",
    Part.HOT: "What the model remembers of the newest pages: exact keys and values",
    Part.OPEN: "What the model remembers of the newest words, and room for the next ones",
    Part.IDLE: "What the model remembers of conversations that are not being answered",
    Part.CACHE: "Memory that the engine, MLX, is done with and keeps to use again",
    Part.REST: "The program itself, and work arrays while it reads",
}

PHASE_WORDS = {
    Phase.IDLE: "Idle",
    Phase.LOAD: "Loading",
    Phase.PREFILL: "Reading",
    Phase.DECODE: "Writing",
    Phase.TRIM: "Trimming",
    Phase.PAUSED: "Paused",
}


def parts_of(sample: MemorySample) -> tuple[int, ...]:
    """Return the bytes of each `Part`, in their order.

    Together they are the process's bytes. Where the system counts less than is known to be held, as on macOS
    or with arrays on a GPU, the rest is 0 and they are what is known.
    """
    kv = sample.engine.kv
    known = (
        sample.engine.weights_nbytes,
        kv.cold,
        kv.warm,
        kv.hot,
        kv.open,
        kv.idle,
        sample.cache_nbytes,
    )
    return (*known, max(0, sample.process_nbytes - sum(known)))
