"""How the next token is chosen: mlx-lm's samplers and logits processors for our settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mlx.core as mx
from mlx_lm.sample_utils import make_logits_processors
from mlx_lm.sample_utils import make_sampler as mlx_lm_sampler

from engine.sampling import SamplingParams

REPETITION_WINDOW_TOKENS = 64
SMALLEST_TOP_P = 1e-6
"""Keeps the likeliest token only; mlx-lm would take 0 as off."""


class TokenChooser:
    """Chooses one token of a reply after another, without waiting for any.

    Args:
        sampling: how.
        vocab_size: how many tokens there are.
        prompt: what is answered; its last tokens count as repeated too.
    """

    def __init__(self, sampling: SamplingParams, vocab_size: int, prompt: list[int]) -> None:
        self._sampler = _make_sampler(sampling, vocab_size)
        self._processors = _make_processors(sampling)
        self._recent = mx.array(prompt[-REPETITION_WINDOW_TOKENS:])

    def choose(self, logits: mx.array, beside: Sequence[mx.array] = ()) -> mx.array:
        """Queue the choice of the next token, shape [1], by logits `[1, vocabulary]`.

        What else the pass has given is evaluated with it: a pass that is cut in two is slower.
        """
        for processor in self._processors:
            logits = processor(self._recent, logits)
        chosen = self._sampler(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
        if self._processors:
            self._recent = mx.concatenate([self._recent, chosen])[-REPETITION_WINDOW_TOKENS:]
        mx.async_eval(chosen, *beside)
        return chosen


def _make_sampler(sampling: SamplingParams, vocab_size: int) -> Callable[[mx.array], mx.array]:
    """Return mlx-lm's sampler; it knows 0 as off where ours says 1, and no `top_k` beyond the vocabulary."""
    sampler: Callable[[mx.array], mx.array] = mlx_lm_sampler(
        temp=sampling.temperature,
        top_p=max(sampling.top_p, SMALLEST_TOP_P),
        min_p=sampling.min_p,
        top_k=sampling.top_k if sampling.top_k < vocab_size else 0,
    )
    return sampler


def _make_processors(sampling: SamplingParams) -> list[Callable[[mx.array, mx.array], mx.array]]:
    """Return what changes the logits before a token is chosen, given the tokens so far."""
    if sampling.repetition_penalty == 1:
        return []
    processors: list[Callable[[mx.array, mx.array], mx.array]] = make_logits_processors(
        repetition_penalty=sampling.repetition_penalty,
        repetition_context_size=REPETITION_WINDOW_TOKENS,
    )
    return processors
