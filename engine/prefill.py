"""Reading tokens into a cache in pieces, so that a stop is noticed and memory stays bounded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import mlx.core as mx

from engine.cancel import CancelToken
from engine.errors import Cancelled, ModelError
from engine.events import CacheChanged, PrefillProgress
from engine.kv.cache import SequenceCache
from engine.model import Model
from engine.prefill_chunks import STOP_TARGET_S, chunk_size
from engine.prefixes.prompt_saving import NOT_SAVED, PromptSaving


class PromptReader:
    """Reads a text into a cache, chunk by chunk.

    Args:
        model: reads.
        cache: is extended.
        cancel: is looked at between two chunks, and within what takes long.
        saving: saves what was read after each chunk that the cache, and no fork of it, has taken.

    Attributes:
        chunks: how large the chunks are.
        saving: as given.
        checks_layers: whether a pass looks for a stop before each layer that takes keys.
        read_tokens: tokens read so far.
    """

    def __init__(
        self,
        model: Model,
        cache: SequenceCache,
        cancel: CancelToken,
        saving: PromptSaving = NOT_SAVED,
    ) -> None:
        self.chunks = chunk_size(model, cache)
        self.checks_layers = self.chunks.takes_long
        self.read_tokens = 0
        self.saving = saving
        self._model_name = model.info.name
        self._times = model.times
        self._cache = cache
        self._cancel = cancel
        self._left_half_way = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Notice a stop between two layers while this lasts."""
        self._cache.watch(self._check_before_layer)
        try:
            yield
        finally:
            self._cache.watch(None)

    def read_chunk(self, tokens: Sequence[int]) -> None:
        """Read as many of `tokens`, which follow what the cache holds, as one pass takes."""
        self._read_chunk(self._cache, tokens)
        self.saving.after_chunk()

    def read_into(self, head: SequenceCache, tokens: Sequence[int]) -> Iterator[CacheChanged]:
        """Read tokens into a fork of the cache, chunk by chunk; yield the figures of the cache after each.

        Raises:
            Cancelled: some tokens were read, or a pass was left between two layers.
        """
        start = head.num_tokens
        while (done := head.num_tokens - start) < len(tokens):
            self._cancel.check()
            self._read_chunk(head, tokens[done:])
            yield CacheChanged(self._cache.spec, self._cache.usage())

    def read_on(
        self, tokens: Sequence[int], reused_tokens: int = 0
    ) -> Iterator[PrefillProgress | CacheChanged]:
        """Read what the cache lacks of `tokens`, of which it has the first, and tell how far it is.

        Raises:
            Cancelled: as `read_into`.
        """
        cache = self._cache
        while cache.num_tokens < len(tokens):
            self._cancel.check()
            self.read_chunk(tokens[cache.num_tokens :])
            yield PrefillProgress(cache.num_tokens, len(tokens), reused_tokens)
            yield CacheChanged(cache.spec, cache.usage())

    def _read_chunk(self, cache: SequenceCache, tokens: Sequence[int]) -> None:
        chunk = tokens[: self.chunks.after(cache.num_tokens)]
        before, started_s = cache.num_tokens, time.perf_counter()
        cache.read(chunk)
        elapsed_s = time.perf_counter() - started_s
        self.read_tokens += len(chunk)
        self._times.read(before, cache.num_tokens, elapsed_s)
        self.chunks.adapt(len(chunk), elapsed_s)
        self.checks_layers = self.chunks.takes_long
        mx.clear_cache()

    def time_pass(self, elapsed_s: float) -> None:
        """End the checks between layers where a whole pass is quick; they keep steps from running ahead."""
        self.checks_layers = elapsed_s > STOP_TARGET_S

    def require_numbers(self, logits: mx.array) -> None:
        """Refuse to go on from damaged weights: a model that computes NaN would babble one token for ever.

        Raises:
            ModelError: there is NaN among the logits. All is forgotten, and nothing of it is saved any more.
        """
        if mx.isnan(logits).any().item():
            self.saving.disown()
            self._cache.clear()
            raise ModelError(
                f"{self._model_name} computes no usable numbers: its weights are damaged. "
                "Get or copy the model again."
            )

    def align(self) -> None:
        """Bring the cache back to the tokens that it names, after a stop."""
        if self._left_half_way:
            self._left_half_way = False
            self._cache.realign()

    def _check_before_layer(self, keys: mx.array) -> None:
        if self.checks_layers:
            mx.eval(keys)
            try:
                self._cancel.check()
            except Cancelled:
                self._left_half_way = True
                raise
