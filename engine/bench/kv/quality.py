"""What a cache's precision costs in quality: next-token distributions side by side with those at 16 bits.

The text is given to the model as it stands (teacher forcing). All caches take it together, chunk by chunk, so
that only one chunk's logits are in memory: those of a whole text would be gigabytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import mlx.core as mx
import mlx.nn as nn

from engine.bench.kv.figures import Quality
from engine.bench.kv.kinds import CacheKind, MlxLmKind
from engine.bench.kv.mlx_lm import dequantized_layers
from engine.kv.cache import SequenceCache

CHUNK_TOKENS = 64
"""Tokens of one forward pass; they see each other at 16 bits in our cache, as the whole open page does."""


class Reader(Protocol):
    """A cache that reads text."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""

    def read(self, tokens: Sequence[int]) -> mx.array:
        """Read tokens and return their logits, `[1, tokens, vocabulary]`."""


class MlxLmReader:
    """Reads text into mlx-lm's caches."""

    def __init__(self, module: nn.Module, layers: Sequence[Any]) -> None:
        self._module = module
        self._layers = layers

    @property
    def nbytes(self) -> int:
        """Bytes held, unused room included."""
        return sum(layer.nbytes for layer in self._layers if not layer.empty())

    def read(self, tokens: Sequence[int]) -> mx.array:
        """Read tokens and return their logits, `[1, tokens, vocabulary]`."""
        logits: mx.array = self._module(mx.array([list(tokens)]), cache=self._layers)
        mx.eval(logits, [layer.state for layer in self._layers])
        return logits


@dataclass
class _Sums:
    """Sums over the positions so far."""

    kl: float = 0.0
    loss: float = 0.0
    same: int = 0

    def add(self, logprobs: mx.array, reference: mx.array, following: mx.array) -> None:
        """Count one chunk: log-probabilities, `[tokens, vocabulary]`, and the tokens that follow."""
        kl = (mx.exp(reference) * (reference - logprobs)).sum(axis=-1).sum()
        loss = -mx.take_along_axis(logprobs, following[:, None], axis=-1).sum()
        same = (logprobs.argmax(axis=-1) == reference.argmax(axis=-1)).sum()
        mx.eval(kl, loss, same)
        self.kl += cast(float, kl.item())
        self.loss += cast(float, loss.item())
        self.same += cast(int, same.item())


def make_reader(module: nn.Module, kind: CacheKind) -> Reader:
    """Return an empty cache of a kind, mlx-lm's with attention over dequantized arrays."""
    if isinstance(kind, MlxLmKind):
        return MlxLmReader(module, dequantized_layers(module, kind))
    return SequenceCache(module, kind.spec)


def measure_quality(
    reference: Reader,
    readers: Mapping[CacheKind, Reader],
    tokens: Sequence[int],
    on_progress: Callable[[int], None],
) -> dict[CacheKind, Quality]:
    """Have all caches read the tokens, and return how far each is from the reference.

    Args:
        reference: an empty cache at full precision.
        readers: empty caches by kind.
        tokens: the text, at least 2; its last token is only predicted.
        on_progress: told how many tokens are read.
    """
    sums = {kind: _Sums() for kind in readers}
    last = len(tokens) - 1
    for start in range(0, last, CHUNK_TOKENS):
        stop = min(start + CHUNK_TOKENS, last)
        chunk, following = tokens[start:stop], mx.array(list(tokens[start + 1 : stop + 1]))
        expected = _logprobs(reference.read(chunk))
        for kind, reader in readers.items():
            sums[kind].add(_logprobs(reader.read(chunk)), expected, following)
        mx.clear_cache()
        on_progress(stop)
    return {
        kind: Quality(
            max(0.0, one.kl / last), math.exp(one.loss / last), one.same / last, readers[kind].nbytes / last
        )
        for kind, one in sums.items()
    }


def _logprobs(logits: mx.array) -> mx.array:
    """Return log-probabilities in float32, `[tokens, vocabulary]`, evaluated."""
    rows = logits[0].astype(mx.float32)
    logprobs = rows - mx.logsumexp(rows, axis=-1, keepdims=True)
    mx.eval(logprobs)
    return logprobs
