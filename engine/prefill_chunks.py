"""How many tokens of a prompt one forward pass reads: as many as time and memory allow."""

from __future__ import annotations

from engine.backend import Device
from engine.budget import activation_nbytes
from engine.kv.cache import SequenceCache
from engine.kv.layers import can_be_left
from engine.kv.room import MAX_CHUNK_TOKENS
from engine.model import Model

CHUNK_TARGET_S = 2.0
"""Seconds that one prefill chunk may take: progress is told after each, and each reads all pages once."""
STOP_TARGET_S = 0.2
"""A pass that takes longer than this looks for a stop before each layer that takes keys."""
MIN_CHUNK_TOKENS = 16
FIRST_CHUNK_TOKENS = 64
LEAST_DIVIDED_TOKENS = 32
"""Chunks are not made smaller than this where memory is short: each chunk costs a copy of all pages."""
SCORES_NBYTES = 512 * 2**20
"""The most that the attention scores of one layer may take: `[heads, chunk, context]`, where they exist."""
FUSED_HEAD_DIMS = frozenset({64, 72, 80, 96, 128})
"""Heads for which MLX's attention keeps no scores, on Metal and on CUDA; on the CPU it always does."""


class ChunkSize:
    """The size of the next prefill chunk, learned from how long the former ones took.

    Attributes:
        takes_long: whether a chunk may take longer than a stop should wait. At first nothing is known.
        divisor: how many times smaller chunks and their scores are while memory is short.
    """

    def __init__(self, target_s: float, score_nbytes: int) -> None:
        """Begin with a small chunk.

        Args:
            target_s: seconds that a chunk may take.
            score_nbytes: bytes that each token read keeps for each token of the context, 0 for none.
        """
        self.takes_long = True
        self.divisor = 1
        self._target_s = target_s
        self._score_nbytes = score_nbytes
        self._wanted_tokens = FIRST_CHUNK_TOKENS

    def after(self, num_held: int) -> int:
        """Return how many tokens to read next when `num_held` are in the cache."""
        wanted = max(min(self._wanted_tokens, LEAST_DIVIDED_TOKENS), self._wanted_tokens // self.divisor)
        if not self._score_nbytes:
            return wanted
        nbytes_per_token = self._score_nbytes * (num_held + wanted)
        return max(1, min(wanted, SCORES_NBYTES // self.divisor // nbytes_per_token))

    def adapt(self, num_tokens: int, elapsed_s: float) -> None:
        """Learn the speed from a chunk: the next one takes about the target at most, or is the smallest."""
        fitting = int(num_tokens * self._target_s / max(elapsed_s, 1e-4))
        wanted = min(fitting, 2 * self._wanted_tokens, MAX_CHUNK_TOKENS)
        self._wanted_tokens = max(MIN_CHUNK_TOKENS, wanted // MIN_CHUNK_TOKENS * MIN_CHUNK_TOKENS)
        self.takes_long = elapsed_s * self._wanted_tokens > STOP_TARGET_S * num_tokens


def chunk_size(model: Model, cache: SequenceCache) -> ChunkSize:
    """Return the chunks for a model and its cache.

    Where leaving a pass half-way is impossible or costs all that was read, a whole chunk must be quick.
    """
    target_s = CHUNK_TARGET_S if can_be_left(cache.layers) else STOP_TARGET_S
    is_fused = model.backend.device is not Device.CPU and model.info.head_dim in FUSED_HEAD_DIMS
    score_nbytes = model.info.num_heads * activation_nbytes(model.info, model.backend)
    return ChunkSize(target_s, 0 if is_fused else score_nbytes)
