"""What memory can be given back at once, and what that was, for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mlx.core as mx

from engine.held import HeldSequences
from engine.kv.cache import SequenceCache
from engine.memory_linux import trim_heap
from engine.wording import format_nbytes

TOLD_NBYTES = 1 << 20
"""Fewer free buffers than this are given back without a word."""


@dataclass(frozen=True)
class Done:
    """What a step did, for people, and the bytes that it gave back."""

    sentence: str
    freed_nbytes: int = 0


def spill_idle(held: HeldSequences, check: Callable[[], None]) -> Done | None:
    """Forget versions that are not going on, and take conversations that are not in hand out of memory.

    These go to disk where that is possible.
    """
    of_versions = held.forget_versions()
    before = held.counters
    freed = of_versions + held.spill_idle(check)
    if not freed:
        return None
    gave = f"which gave {format_nbytes(freed)} back"
    if held.counters.evictions > before.evictions:
        return Done(f"Other conversations were forgotten, {gave}. They are read again when you go on.", freed)
    if freed > of_versions:
        return Done(f"Other conversations went to disk, {gave}. They come back when you go on.", freed)
    return Done(
        f"Other versions of messages were forgotten, {gave}. They are read again when you go on.", freed
    )


def clear_free_buffers() -> Done | None:
    """Give MLX's free buffers back to the system."""
    freed = mx.get_cache_memory()
    mx.clear_cache()
    trim_heap()
    freed -= mx.get_cache_memory()
    if freed < TOLD_NBYTES:
        return None
    return Done(f"{format_nbytes(freed)} of free buffers went back to the system.", freed)


def lower_in_hand(held: HeldSequences, check: Callable[[], None]) -> Done | None:
    """Do what `lower_pages` does with the conversation in hand."""
    return None if held.in_hand is None else lower_pages(held.in_hand.cache, check)


def lower_pages(cache: SequenceCache, check: Callable[[], None]) -> Done | None:
    """Bring all pages of a conversation to the bits of the settings, and new ones until `cache.ease`."""
    before, usage = cache.nbytes, cache.usage()
    pages = usage.hot_pages + usage.warm_pages
    cache.press(check)
    freed = before - cache.nbytes
    if freed <= 0:
        return None
    what = "1 page went" if pages == 1 else f"{pages:,} pages went"
    return Done(f"{what} to the bits of the settings early, which gave {format_nbytes(freed)} back.", freed)
