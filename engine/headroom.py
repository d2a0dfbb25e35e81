"""How much memory can be had now, and what a conversation's KV cache may take of it."""

from __future__ import annotations

import bisect
import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass

import mlx.core as mx

from engine.backend import Backend
from engine.budget import kv_nbytes
from engine.kv.precision import PRESETS, BitsPair, KVSpec, PrecisionRule
from engine.memory import available_nbytes
from engine.memory_limits import MemoryLimits
from engine.memory_linux import trim_heap
from engine.memory_sensor import process_nbytes
from engine.model_info import ModelInfo
from engine.wording import format_nbytes

_UNIFORM_BITS = (8, 6, 5, 4, 3, 2)


def headroom_nbytes(limits: MemoryLimits) -> int:
    """Return the bytes that this process can take now: what the system has, as far as the user allows it.

    MLX's free buffers count, as it fills them before it asks the system for more.
    """
    headroom = available_nbytes() + mx.get_cache_memory()
    if limits.most_nbytes is not None:
        headroom = min(headroom, limits.most_nbytes - taken_nbytes())
    return max(0, headroom)


def taken_nbytes() -> int:
    """Return the bytes that this process has taken, MLX's free buffers left out."""
    trim_heap()  # what is free in it would count as taken
    return process_nbytes(os.getpid()) - mx.get_cache_memory()


def limit_in_the_way(limits: MemoryLimits, needed_nbytes: int) -> int | None:
    """Return what the user allows where the computer could give so many bytes more, None elsewhere."""
    has_enough = needed_nbytes <= available_nbytes() + mx.get_cache_memory()
    return limits.most_nbytes if has_enough else None


def more_memory(limit_nbytes: int | None) -> str:
    """Return what to do for there to be more, where such a limit of the user is in the way, or none is."""
    if limit_nbytes is None:
        return "Close other programs"
    return f"Allow more memory than {format_nbytes(limit_nbytes)}"


def precisions_below(kv: KVSpec) -> Iterator[KVSpec]:
    """Yield lower precisions, the highest first: the same bits for all layers, and the preset `compact`.

    Pages keep their size, so that what is held can be kept.
    """
    for bits in _UNIFORM_BITS:
        rule = PrecisionRule(0, None, None, BitsPair(bits, bits))
        yield dataclasses.replace(kv, rules=(rule,))
        if bits == 4:
            compact = PRESETS["compact"]
            yield dataclasses.replace(
                kv, rules=compact.rules, hot_pages=compact.hot_pages, warm_pages=compact.warm_pages
            )


@dataclass(frozen=True)
class CacheRoom:
    """What the KV cache of a conversation may grow by now.

    Attributes:
        info: the loaded model.
        backend: what it computes on.
        headroom_nbytes: what can be had beside what the conversation holds.
        held_nbytes: what it holds in memory already.
        held_tokens: how many tokens of its prompt these are.
        reserve_nbytes: the most that is kept free beside it.
    """

    info: ModelInfo
    backend: Backend
    headroom_nbytes: int
    held_nbytes: int
    held_tokens: int
    reserve_nbytes: int

    def needed_nbytes(self, kv: KVSpec, num_tokens: int) -> int:
        """Return the bytes that must be there for the cache to grow to so many tokens.

        As much is kept free as it grows by, at most the reserve: a short message may use up what a plan kept
        free for the rest of the system, a long one not. What is held already costs nothing.
        """
        held = max(self.held_nbytes, self._kv_nbytes(kv, self.held_tokens))
        growth = max(0, self._kv_nbytes(kv, num_tokens) - held)
        return growth + min(growth, self.reserve_nbytes)

    def fits(self, kv: KVSpec, num_tokens: int) -> bool:
        """Whether the cache can grow to so many tokens."""
        return self.needed_nbytes(kv, num_tokens) <= self.headroom_nbytes

    def fitting_tokens(self, kv: KVSpec) -> int:
        """Return the most tokens that the cache can grow to, at most the model's positions."""

        def needed(num_tokens: int) -> int:
            return self.needed_nbytes(kv, num_tokens)

        positions = range(1, self.info.context_tokens + 1)
        return int(bisect.bisect_right(positions, self.headroom_nbytes, key=needed))

    def mildest(self, kv: KVSpec, num_tokens: int) -> KVSpec | None:
        """Return the highest precision below `kv` at which so many tokens fit, None where none does."""
        most = self._kv_nbytes(kv, num_tokens)
        lower = (each for each in precisions_below(kv) if self._kv_nbytes(each, num_tokens) < most)
        return next((each for each in lower if self.fits(each, num_tokens)), None)

    def _kv_nbytes(self, kv: KVSpec, num_tokens: int) -> int:
        return kv_nbytes(self.info, self.backend, kv, num_tokens) if num_tokens else 0
