"""Pages: a fixed number of tokens of one sequence, in all layers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.kv.precision import Tier

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


@dataclass
class Blocks:
    """Where one layer's keys, or its values, of a page lie: bits and slot for each KV head, `[kv_heads]`."""

    bits: IntArray
    slots: IntArray


@dataclass(eq=False)
class Page:
    """Tokens that were sealed together. Its text never changes; its precision only goes down.

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

    @property
    def is_exact(self) -> bool:
        """Whether all of it is held at 16 bits."""
        return all((blocks.bits == 16).all() for part in (self.keys, self.values) for blocks in part.values())
