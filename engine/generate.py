"""Prefill and decode as a generator of events.

The loop is mlx-lm's in short: the prompt in chunks, then one token a step with the next step already queued
(`mx.async_eval`) while the last token is handed over. What is added here: a stop that is noticed within a
chunk, chunks that time and memory bound (`prefill_chunks.py`), and a cache whose `tokens` always name what it
holds.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import cast

import mlx.core as mx
from mlx_lm.sample_utils import make_logits_processors, make_sampler
from mlx_lm.tokenizer_utils import StreamingDetokenizer

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from engine.events import (
    CacheChanged,
    Finished,
    GenerationEvent,
    GenerationStats,
    PrefillProgress,
    StopReason,
    Token,
)
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.prefill_chunks import STOP_TARGET_S, chunk_size
from engine.sampling import SamplingParams

CLEAR_EVERY_TOKENS = 256
"""Decoded tokens after which buffers that a growing cache has left behind are given back, as mlx-lm does."""
TELL_EVERY_TOKENS = 32
"""Decoded tokens after which the figures of the cache are told."""
REPETITION_WINDOW_TOKENS = 64
THINK_START_TOKENS = 4
"""Reasoning that a chat template begins stands this close to the prompt's end, a line end behind it."""
SMALLEST_TOP_P = 1e-6
"""Keeps the likeliest token only; mlx-lm would take 0 as off."""


class Generation:
    """One reply: reads a prompt into a cache and decodes from it.

    The cache must hold fewer tokens than the prompt and only such as the prompt begins with; they are not
    read again. `limit_tokens` is the context, prompt and answer together, and must exceed the prompt.
    `wanted_kv` tells the precision that is wanted now; without it the cache's own stays.
    """

    def __init__(
        self,
        model: Model,
        cache: SequenceCache,
        prompt: Sequence[int],
        sampling: SamplingParams,
        *,
        limit_tokens: int,
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> None:
        self._model = model
        self._cache = cache
        self._prompt = list(prompt)
        self._sampling = sampling
        self._cancel = cancel
        self._wanted_kv = wanted_kv
        self._room_tokens = limit_tokens - len(self._prompt)
        self._sampler = _make_sampler(sampling, model.info.vocab_size)
        self._processors = _make_processors(sampling)
        self._recent = mx.array(self._prompt[-REPETITION_WINDOW_TOKENS:])
        self._chunk_size = chunk_size(model, cache)
        self._reused_tokens = cache.num_tokens
        self._read_tokens = 0
        self._completion_tokens = 0
        self._last_token = self._prompt[-1]
        self._seen_kv = cache.spec
        self._checks_layers = self._chunk_size.takes_long
        self._left_half_way = False
        self._started_s = time.perf_counter()
        self._first_token_s: float | None = None

    def events(self) -> Iterator[GenerationEvent]:
        """Yield progress, tokens and at last `Finished`; a stop by the user ends it with its figures too."""
        mx.reset_peak_memory()
        mx.random.seed(secrets.randbits(32) if self._sampling.seed is None else self._sampling.seed)
        self._cache.watch(self._check_before_layer)
        try:
            yield from self._prefill()
            reason = yield from self._decode()
        except Cancelled:
            reason = self._stopped()
        finally:
            self._cache.watch(None)
        yield Finished(self._stats(reason))

    def _stopped(self) -> StopReason:
        """Bring the cache back to the tokens that it names."""
        if self._left_half_way:
            self._left_half_way = False
            self._cache.realign()
        return StopReason.STOPPED

    def _check_before_layer(self, keys: mx.array) -> None:
        """Notice a stop between two layers where a whole pass takes too long."""
        if self._checks_layers:
            mx.eval(keys)
            try:
                self._cancel.check()
            except Cancelled:
                self._left_half_way = True
                raise

    def _prefill(self) -> Iterator[PrefillProgress | CacheChanged]:
        total = len(self._prompt)
        done = self._reused_tokens
        yield PrefillProgress(done, total, self._reused_tokens)
        yield self._cache_changed()
        while total - done > 1:
            self._cancel.check()
            yield from self._follow_precision()
            chunk = self._prompt[done : min(done + self._chunk_size.after(done), total - 1)]
            started = time.perf_counter()
            self._cache.read(chunk)
            done += len(chunk)
            self._read_tokens += len(chunk)
            self._chunk_size.adapt(len(chunk), time.perf_counter() - started)
            self._checks_layers = self._chunk_size.takes_long
            mx.clear_cache()
            yield PrefillProgress(done, total, self._reused_tokens)
            yield self._cache_changed()
        self._cancel.check()
        yield from self._follow_precision()

    def _follow_precision(self) -> Iterator[CacheChanged]:
        """Take over what the user has changed since; pages of another size wait for the next reply."""
        wanted = self._wanted_kv() if self._wanted_kv else self._seen_kv
        if wanted is self._seen_kv:
            return
        self._seen_kv = wanted
        held = self._cache.spec
        spec = dataclasses.replace(wanted, page_tokens=held.page_tokens, group_size=held.group_size)
        if spec != held:
            self._cache.apply(spec, self._cancel.check)
            yield self._cache_changed()

    def _cache_changed(self) -> CacheChanged:
        return CacheChanged(self._cache.spec, self._cache.usage())

    def _decode(self) -> Generator[Token | CacheChanged, None, StopReason]:
        """Write the reply; its text is made whole wherever a stop falls, as its tokens stay in the cache."""
        detokenizer = self._model.tokenizer.detokenizer
        detokenizer.reset()
        if self._prompt_opens_reasoning():
            yield Token(self._model.tokenizer.think_start, self._prompt[-1])
        try:
            reason = yield from self._write(detokenizer)
        except Cancelled:
            reason = self._stopped()
        detokenizer.finalize()
        if rest := detokenizer.last_segment:
            yield Token(rest, self._last_token)
        return reason

    def _write(self, detokenizer: StreamingDetokenizer) -> Generator[Token | CacheChanged, None, StopReason]:
        budget = min(self._sampling.max_tokens, self._room_tokens)
        current = self._first_step()
        self._cache.commit(self._prompt[-1:])
        self._read_tokens += 1
        while True:
            is_last = self._completion_tokens + 1 == budget
            upcoming = None if is_last else self._step(current)
            self._last_token = cast(int, current.item())
            if upcoming is not None:
                self._cache.commit([self._last_token])
            self._count_token()
            if self._completion_tokens % CLEAR_EVERY_TOKENS == 0:
                mx.clear_cache()
            if self._last_token in self._model.tokenizer.eos_token_ids:
                return StopReason.END
            detokenizer.add_token(self._last_token)
            yield Token(detokenizer.last_segment, self._last_token)
            if self._completion_tokens % TELL_EVERY_TOKENS == 0:
                yield self._cache_changed()
            if upcoming is None:
                is_full = budget < self._sampling.max_tokens
                return StopReason.CONTEXT if is_full else StopReason.LENGTH
            self._cancel.check()
            yield from self._follow_precision()
            current = upcoming

    def _prompt_opens_reasoning(self) -> bool:
        """Whether the chat template itself began the reasoning, which the reply's text then lacks."""
        tokenizer = self._model.tokenizer
        if not tokenizer.has_thinking:
            return False
        opened, closed = tokenizer.rfind_think_start(self._prompt), tokenizer.rfind_think_end(self._prompt)
        return bool(opened > closed and opened >= len(self._prompt) - THINK_START_TOKENS)

    def _first_step(self) -> mx.array:
        """Take the prompt's last token; a quick pass ends the checks between layers.

        They wait for each layer, which keeps a step from running ahead while the last token is handed over.
        """
        started_s = time.perf_counter()
        logits = self._forward(mx.array(self._prompt[-1:]))
        self._require_numbers(logits)
        sampled = self._sample(logits)
        if self._checks_layers:
            mx.eval(sampled)
            self._checks_layers = time.perf_counter() - started_s > STOP_TARGET_S
        return sampled

    def _require_numbers(self, logits: mx.array) -> None:
        """Refuse to go on from damaged weights: a model that computes NaN would babble one token for ever."""
        if mx.isnan(logits).any().item():
            self._cache.clear()
            raise ModelError(
                f"{self._model.info.name} computes no usable numbers: its weights are damaged. "
                "Get or copy the model again."
            )

    def _step(self, tokens: mx.array) -> mx.array:
        """Queue one forward pass over `tokens`, shape [1], and return the token sampled after it, [1]."""
        return self._sample(self._forward(tokens))

    def _forward(self, tokens: mx.array) -> mx.array:
        """Return the logits after `tokens`, shape [1]: [1, vocabulary]."""
        return cast(mx.array, self._model.module(tokens[None], cache=self._cache.layers))[:, -1, :]

    def _sample(self, logits: mx.array) -> mx.array:
        """Queue the choice of a token, shape [1]."""
        for processor in self._processors:
            logits = processor(self._recent, logits)
        sampled = self._sampler(logits - mx.logsumexp(logits, axis=-1, keepdims=True))
        if self._processors:
            self._recent = mx.concatenate([self._recent, sampled])[-REPETITION_WINDOW_TOKENS:]
        mx.async_eval(sampled)
        return sampled

    def _count_token(self) -> None:
        self._completion_tokens += 1
        if self._first_token_s is None:
            self._first_token_s = time.perf_counter()

    def _stats(self, reason: StopReason) -> GenerationStats:
        now_s = time.perf_counter()
        first_s = self._first_token_s if self._first_token_s is not None else now_s
        return GenerationStats(
            prompt_tokens=len(self._prompt),
            reused_tokens=self._reused_tokens,
            completion_tokens=self._completion_tokens,
            ttft_s=first_s - self._started_s,
            prefill_tps=_rate(self._read_tokens, first_s - self._started_s),
            decode_tps=_rate(self._completion_tokens - 1, now_s - first_s),
            kv=str(self._cache.spec),
            kv_usage=self._cache.usage(),
            peak_nbytes=mx.get_peak_memory(),
            stop_reason=reason,
            kv_note=self._cache.note,
        )


def _rate(count: int, elapsed_s: float) -> float:
    return count / elapsed_s if count > 0 and elapsed_s > 0 else 0.0


def _make_sampler(sampling: SamplingParams, vocab_size: int) -> Callable[[mx.array], mx.array]:
    """Return mlx-lm's sampler; it knows 0 as off where ours says 1, and no `top_k` beyond the vocabulary."""
    sampler: Callable[[mx.array], mx.array] = make_sampler(
        temp=sampling.temperature,
        top_p=max(sampling.top_p, SMALLEST_TOP_P),
        min_p=sampling.min_p,
        top_k=sampling.top_k if sampling.top_k < vocab_size else 0,
    )
    return sampler


def _make_processors(sampling: SamplingParams) -> list[Callable[[mx.array, mx.array], mx.array]]:
    if sampling.repetition_penalty == 1:
        return []
    processors: list[Callable[[mx.array, mx.array], mx.array]] = make_logits_processors(
        repetition_penalty=sampling.repetition_penalty,
        repetition_context_size=REPETITION_WINDOW_TOKENS,
    )
    return processors
