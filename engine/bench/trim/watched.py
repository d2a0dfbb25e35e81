"""An engine that a bench can look into: its model, and what it holds of the conversation in hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import cast

import mlx.core as mx
import mlx.nn as nn

from engine.alignment import common_prefix
from engine.engine import Engine
from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.model import Model

CHUNK_TOKENS = 64
"""Tokens of one forward pass while a continuation is read."""


class WatchedEngine(Engine):
    """An engine whose own cache is measured, not a copy of it."""

    @property
    def model(self) -> Model:
        """The model that is loaded.

        Raises:
            ModelError: there is none.
        """
        return self._require_session().model

    @property
    def context(self) -> HeldContext:
        """What is held of the conversation in hand; there must be one."""
        context = self._require_session().context
        assert context is not None
        return context

    def perplexity(self, prompt: Sequence[int], continuation: Sequence[int]) -> float:
        """Return the perplexity of all but the first token of a continuation behind a prompt.

        The conversation in hand begins the prompt, or is all of it, and stays as it was.

        Raises:
            OctavoError: some layers are not paged.
        """
        fork = self.context.fork(is_aside=True)
        try:
            fork.truncate(common_prefix(fork.cache.tokens, prompt))
            for chunk in _chunks(prompt[fork.cache.num_tokens :]):
                fork.cache.read(chunk)
            loss = sum(_losses(fork.cache, continuation))
        finally:
            fork.close()
        return math.exp(loss / (len(continuation) - 1))


def _chunks(tokens: Sequence[int]) -> Iterator[Sequence[int]]:
    return (tokens[start : start + CHUNK_TOKENS] for start in range(0, len(tokens), CHUNK_TOKENS))


def _losses(cache: SequenceCache, tokens: Sequence[int]) -> Iterator[float]:
    """Read all tokens but the last; yield the sum of the losses of each chunk's following tokens."""
    following = tokens[1:]
    for chunk, expected in zip(_chunks(tokens[:-1]), _chunks(following), strict=True):
        logits = cache.read(chunk)[0].astype(mx.float32)
        loss = nn.losses.cross_entropy(logits, mx.array(list(expected)), reduction="sum")
        yield cast(float, loss.item())
        mx.clear_cache()
