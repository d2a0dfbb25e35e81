"""The precision of a reply while it is written: what the user wants by then, as long as it fits."""

from __future__ import annotations

from collections.abc import Callable

from engine.budget import kv_nbytes
from engine.errors import OctavoError
from engine.headroom import CacheRoom
from engine.kv.precision import KVSpec


class FollowedPrecision:
    """The precision that a reply follows: what the user wants now, as long as `longest` tokens fit at it.

    Args:
        wanted: tells the precision that is wanted now.
        first: the one that the reply was asked with.
        room: gives the memory as it is now.
        longest: tokens of the prompt and the longest answer.
        anyway: whether it is followed even where that does not fit into memory.
    """

    def __init__(
        self,
        wanted: Callable[[], KVSpec],
        first: KVSpec,
        room: Callable[[], CacheRoom],
        longest: int,
        anyway: bool,
    ) -> None:
        self._wanted = wanted
        self._seen = self._kv = first
        self._room = room
        self._longest = longest
        self._anyway = anyway

    def __call__(self) -> KVSpec:
        """Return the precision to follow now."""
        wanted = self._wanted()
        if wanted != self._seen:
            self._seen = wanted
            if self._fits(wanted):
                self._kv = wanted
        return self._kv

    def _fits(self, kv: KVSpec) -> bool:
        room = self._room()
        info = room.info
        try:
            kv.require_fit(info.num_layers, info.num_kv_heads)
        except OctavoError:
            return False
        now, then = (kv_nbytes(info, room.backend, each, self._longest) for each in (self._kv, kv))
        return self._anyway or then <= now or room.fits(kv, self._longest)
