"""Prefill and decode as a generator of events.

The loop is mlx-lm's in short: the prompt in chunks, then one token a step with the next step already queued
(`mx.async_eval`) while the last token is handed over. What is added here: a stop that is noticed within a
chunk, chunks that time and memory bound (`prefill.py`), the guard's ladder between chunks and tokens
(`relief.py`), and a cache whose `tokens` always name what it holds.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import cast

import mlx.core as mx
from mlx_lm.tokenizer_utils import StreamingDetokenizer

from engine.cancel import CancelToken
from engine.choosing import TokenChooser
from engine.errors import Cancelled
from engine.events import (
    CacheChanged,
    ContextShortened,
    Finished,
    GenerationEvent,
    GenerationStats,
    PrefillProgress,
    StopReason,
    Token,
)
from engine.extending import Brought
from engine.figures import Phase
from engine.guard import GuardAction
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.prefill import PromptReader
from engine.prefixes.prompt_saving import NOT_SAVED, PromptSaving
from engine.reasoning import opens_reasoning
from engine.relief import ReplyRelief
from engine.reply_clock import ReplyClock
from engine.sampling import SamplingParams

CLEAR_EVERY_TOKENS = 256
"""Decoded tokens after which buffers that a growing cache has left behind are given back, as mlx-lm does."""
TELL_EVERY_TOKENS = 32
"""Decoded tokens after which the figures of the cache are told."""
PUBLISH_EVERY_TOKENS = 16
"""Decoded tokens after which the figures of the engine are published."""
LAST_PASS_TOKENS = 32
"""The last tokens of a prompt that give the answer's first token in the pass in which they are read."""
PAUSE_POLL_S = 0.2
"""How often a reply that waits for memory looks whether there is some."""

Between = CacheChanged | GuardAction | ContextShortened
"""What may be told between two chunks or tokens."""
BringInLine = Callable[[PromptReader], Generator[GenerationEvent, None, Brought]]
"""Makes what a cache holds a beginning of the prompt, with a reader for what is read on the way."""


class Generation:
    """One reply: reads a prompt into a cache and decodes from it.

    The cache must hold fewer tokens than the prompt and only such as the prompt begins with, at first or once
    it is brought in line; they are not read again.

    Args:
        model: what answers.
        cache: is extended.
        prompt: the tokens to answer.
        sampling: how tokens are chosen.
        limit_tokens: the context, prompt and answer together; must exceed the prompt.
        cancel: is looked at between tokens and chunks, and within what takes long.
        wanted_kv: tells the precision that is wanted now; without it the cache's own stays.
        bring_in_line: is called first, where the cache holds something else.
        relief: gives memory back when the guard says so.
        publish: publishes the figures of the engine with what the reply is doing.
        saving: saves what was read of the prompt between its chunks.
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
        bring_in_line: BringInLine | None = None,
        relief: ReplyRelief | None = None,
        publish: Callable[[Phase], None] = lambda phase: None,
        saving: PromptSaving = NOT_SAVED,
    ) -> None:
        self._model = model
        self._cache = cache
        self._prompt = list(prompt)
        self._sampling = sampling
        self._cancel = cancel
        self._wanted_kv = wanted_kv
        self._publish = publish
        self._limit_tokens = limit_tokens
        self._chooser = TokenChooser(sampling, model.info.vocab_size, self._prompt)
        self._reader = PromptReader(model, cache, cancel, saving)
        self._bring_in_line = bring_in_line
        self._relief = relief
        self._reused_tokens = cache.num_tokens
        self._reread_note: str | None = None
        self._completion_tokens = 0
        self._last_token = self._prompt[-1]
        self._seen_kv = cache.spec
        self._clock = ReplyClock()

    def events(self) -> Iterator[GenerationEvent]:
        """Yield progress, tokens and at last `Finished`; a stop by the user ends it with its figures too."""
        mx.reset_peak_memory()
        mx.random.seed(secrets.randbits(32) if self._sampling.seed is None else self._sampling.seed)
        with self._reader.watching():
            try:
                yield from self._begin()
                yield from self._prefill()
                reason = yield from self._decode()
            except Cancelled:
                self._reader.align()
                reason = StopReason.STOPPED
        stats = self._stats(reason)
        self._model.times.written(len(self._prompt), stats.completion_tokens - 1, stats.decode_tps)
        yield Finished(stats)

    def _begin(self) -> Iterator[GenerationEvent]:
        if self._bring_in_line is None:
            return
        self._publish(Phase.PREFILL)
        self._reused_tokens = 0
        brought = yield from self._bring_in_line(self._reader)
        self._reused_tokens, self._reread_note = brought.kept_tokens, brought.note or None

    def _prefill(self) -> Iterator[PrefillProgress | Between]:
        yield self._progress()
        yield self._cache_changed()
        while len(self._prompt) - self._cache.num_tokens > LAST_PASS_TOKENS:
            self._cancel.check()
            yield from self._between(Phase.PREFILL)
            unread = self._prompt[self._cache.num_tokens : -1]
            if unread:
                self._reader.read_chunk(unread)
                if self._relief is not None:
                    self._relief.after_chunk()
                self._publish(Phase.PREFILL)
                yield self._progress()
                yield self._cache_changed()
        self._cancel.check()
        yield from self._between(Phase.PREFILL)

    def _progress(self) -> PrefillProgress:
        return PrefillProgress(self._cache.num_tokens, len(self._prompt), self._reused_tokens)

    def _cache_changed(self) -> CacheChanged:
        return CacheChanged(self._cache.spec, self._cache.usage())

    def _between(self, phase: Phase) -> Iterator[Between]:
        """Do between two chunks or tokens what the user and the guard want."""
        yield from self._follow_precision()
        if self._relief is not None and self._relief.is_due:
            yield from self._relieve(self._relief)
            self._publish(phase)

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

    def _relieve(self, relief: ReplyRelief) -> Iterator[Between]:
        """Follow the guard, and wait as long as it wants a pause."""
        mx.synchronize()  # a queued pass still reads the pages, which would be copied to be changed
        self._publish(Phase.TRIM)
        yield from self._follow_guard(relief)
        while relief.wants_pause:
            self._publish(Phase.PAUSED)
            with self._clock.paused():
                self._cancel.wait(PAUSE_POLL_S)
            self._cancel.check()
            yield from self._follow_precision()  # a lower one is a way out
            yield from self._follow_guard(relief)

    def _follow_guard(self, relief: ReplyRelief) -> Iterator[Between]:
        acted = False
        for action in relief.follow(self._reader.chunks, self._prompt, self._cancel.check):
            acted = True
            yield action
        if cuts := relief.take_cuts():
            for cut in reversed(cuts):
                self._reused_tokens -= max(0, min(self._reused_tokens, cut.stop) - cut.start)
                del self._prompt[cut.start : cut.stop]
            yield ContextShortened(sum(map(len, cuts)))
        if acted:
            yield self._cache_changed()

    def _decode(self) -> Generator[Token | Between, None, StopReason]:
        """Write the reply; its text is made whole wherever a stop falls, as its tokens stay in the cache."""
        tokenizer, detokenizer = self._model.tokenizer, self._model.tokenizer.detokenizer
        detokenizer.reset()
        if opens_reasoning(tokenizer, self._prompt):
            yield Token(tokenizer.think_start, self._prompt[-1])
        try:
            reason = yield from self._write(detokenizer)
        except Cancelled:
            self._reader.align()
            reason = StopReason.STOPPED
        detokenizer.finalize()
        if rest := detokenizer.last_segment:
            yield Token(rest, self._last_token)
        return reason

    def _write(self, detokenizer: StreamingDetokenizer) -> Generator[Token | Between, None, StopReason]:
        budget = min(self._sampling.max_tokens, self._room_tokens)
        rest = self._prompt[self._cache.num_tokens :]
        current = self._first_step(rest)
        self._cache.commit(rest)
        self._reader.read_tokens += len(rest)
        while True:
            upcoming = None if self._completion_tokens + 1 == budget else self._next(current)
            self._last_token = cast(int, current.item())
            if upcoming is not None:
                self._cache.commit([self._last_token])
            self._count_token()
            if self._last_token in self._model.tokenizer.eos_token_ids:
                return StopReason.END
            detokenizer.add_token(self._last_token)
            yield Token(detokenizer.last_segment, self._last_token)
            if self._completion_tokens % TELL_EVERY_TOKENS == 0:
                yield self._cache_changed()
            if upcoming is None:
                return StopReason.CONTEXT if budget < self._sampling.max_tokens else StopReason.LENGTH
            self._cancel.check()
            yield from self._between(Phase.DECODE)
            current = upcoming

    @property
    def _room_tokens(self) -> int:
        """The tokens that the answer may have; positions that dropped tokens left are not used again."""
        unused = self._cache.next_position - self._cache.num_tokens
        most = min(self._limit_tokens, self._model.info.context_tokens - unused)
        return max(1, most - len(self._prompt))

    def _first_step(self, rest: Sequence[int]) -> mx.array:
        """Read the last tokens of the prompt; a quick pass ends the checks between layers.

        They wait for each layer, which keeps a step from running ahead while the last token is handed over.
        """
        started_s = time.perf_counter()
        logits = self._forward(mx.array(list(rest)))
        self._reader.require_numbers(logits)
        sampled = self._chooser.choose(logits, self._cache.seen)
        if self._reader.checks_layers:
            mx.eval(sampled)
            self._reader.time_pass(time.perf_counter() - started_s)
        return sampled

    def _next(self, current: mx.array) -> mx.array:
        """Queue the token after `current`."""
        return self._chooser.choose(self._forward(current), self._cache.seen)

    def _forward(self, tokens: mx.array) -> mx.array:
        """Return the logits after the last of `tokens`, shape [tokens]: [1, vocabulary]."""
        return cast(mx.array, self._model.module(tokens[None], cache=self._cache.layers))[:, -1, :]

    def _count_token(self) -> None:
        self._clock.token()
        if self._completion_tokens % PUBLISH_EVERY_TOKENS == 0:
            self._publish(Phase.DECODE)
        self._completion_tokens += 1
        if self._completion_tokens % CLEAR_EVERY_TOKENS == 0:
            mx.clear_cache()

    def _stats(self, reason: StopReason) -> GenerationStats:
        return GenerationStats(
            prompt_tokens=len(self._prompt),
            reused_tokens=self._reused_tokens,
            completion_tokens=self._completion_tokens,
            ttft_s=self._clock.ttft_s,
            prefill_tps=self._clock.prefill_tps(self._reader.read_tokens),
            decode_tps=self._clock.decode_tps(self._completion_tokens),
            kv=str(self._cache.spec),
            kv_usage=self._cache.usage(),
            peak_nbytes=mx.get_peak_memory(),
            stop_reason=reason,
            kv_note=self._cache.note,
            reread_note=self._reread_note,
        )
