"""What the cells of the page map look like, as plain data."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.kv.page_map import PageMap
from engine.kv.precision import Tier
from engine.kv.usage import PageInfo

LEVELS = 13
"""Steps of brightness."""
_WIDEST = 8
"""A page that is read so many times more, or less, than an even share is as bright, or as pale, as any."""


class PageState(enum.Enum):
    """Where a page is kept; the value is its name for people."""

    __hash__ = object.__hash__  # enum's own is Python and is asked thousands of times a map

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"
    DISK = "on disk"

    @property
    def role(self) -> str:
        """The role of its colour in `Palette`."""
        return "tier_disk" if self is PageState.DISK else f"tier_{self.value}"


class CellLook(NamedTuple):
    """What is drawn for a page.

    Attributes:
        state: gives the colour and the mark.
        level: brightness, from 0 to `LEVELS` - 1.
        shared: whether it is hatched.
        pinned: whether it is framed.
    """

    state: PageState
    level: int
    shared: bool
    pinned: bool


def state_of(page: PageInfo) -> PageState:
    """Return where a page is kept."""
    if page.is_on_disk:
        return PageState.DISK
    if page.tier is Tier.COLD:
        return PageState.COLD
    return PageState.WARM if page.tier is Tier.WARM else PageState.HOT


def cell_looks(page_map: PageMap) -> list[CellLook]:
    """Return what is drawn for each page, in order."""
    levels = heat_levels([page.heat for page in page_map.pages])
    return [
        CellLook(state_of(page), level, page.references > 1, page.pinned)
        for page, level in zip(page_map.pages, levels, strict=True)
    ]


def heat_levels(heats: Sequence[float]) -> list[int]:
    """Return the brightness of pages by how much each is read, compared with an even share.

    Equal steps are equal factors, as the eye takes brightness, and the ends are open: the first page often
    gets half of the attention, which must not make all others look the same. Before the first sample all
    pages count as equal.
    """
    heat = np.array(heats, dtype=np.float64)
    if not heat.any():
        return [(LEVELS - 1) // 2] * len(heats)
    share = np.clip(heat * len(heats) / heat.sum(), 1 / _WIDEST, _WIDEST)
    position = (np.log(share) / np.log(_WIDEST) + 1) / 2
    levels: list[int] = np.rint(position * (LEVELS - 1)).astype(int).tolist()
    return levels
