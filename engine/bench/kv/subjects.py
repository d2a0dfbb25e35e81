"""Caches that read a text and write an answer, each by its own side's loop, on the same loaded model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import mlx.core as mx
from mlx_lm.generate import generate_step

from engine.bench.kv.kinds import CacheKind, MlxLmKind, OctavoKind
from engine.bench.kv.mlx_lm import mlx_lm_layers
from engine.cancel import CancelToken
from engine.events import PrefillProgress, Token
from engine.generate import Generation
from engine.kv.cache import SequenceCache
from engine.model import Model
from engine.sampling import SamplingParams

OnRead = Callable[[int], None]


def ignore(tokens: int) -> None:
    """Take note of no progress."""


class Subject(Protocol):
    """A cache and the loop that belongs to it.

    Attributes:
        layers: what the model's forward pass takes.
    """

    layers: list[Any]

    def stream(self, tokens: Sequence[int], num_tokens: int, on_read: OnRead = ignore) -> Iterator[object]:
        """Read `tokens` behind those that are held, then yield once for each token of an answer."""

    def took(self, token: int) -> None:
        """Name a token whose keys and values a forward pass made elsewhere has put into `layers`."""

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, windows and unused room included."""

    @property
    def sealed_nbytes_per_token(self) -> float | None:
        """Bytes of a token in sealed pages; None where there are none."""

    @property
    def caught(self) -> float | None:
        """Share of the attention mass within the attention budget."""


class MlxLmSubject:
    """mlx-lm: `generate_step` with its own prefill chunks and greedy sampler."""

    def __init__(self, model: Model, kind: MlxLmKind) -> None:
        self.layers = mlx_lm_layers(model.module, kind)
        self._module = model.module

    def stream(self, tokens: Sequence[int], num_tokens: int, on_read: OnRead = ignore) -> Iterator[object]:
        """Read and write; one token more than asked for ends up in the cache, as it always does in mlx-lm."""
        return iter(
            generate_step(
                mx.array(list(tokens)),
                self._module,
                max_tokens=num_tokens,
                prompt_cache=self.layers,
                prompt_progress_callback=lambda done, total: on_read(done),
            )
        )

    def took(self, token: int) -> None:
        """Do nothing: mlx-lm's caches know no tokens."""

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, unused room included."""
        return sum(layer.nbytes for layer in self.layers if not layer.empty())

    @property
    def sealed_nbytes_per_token(self) -> float | None:
        """Bytes of a token, unused room not included."""
        return sum(_nbytes_per_token(layer) for layer in self.layers if not layer.empty())

    @property
    def caught(self) -> float | None:
        """None: all is read."""
        return None


class OctavoSubject:
    """Octavo: `Generation`, greedy."""

    def __init__(self, model: Model, cache: SequenceCache) -> None:
        self._model = model
        self._cache = cache
        self.layers = cache.layers

    def stream(self, tokens: Sequence[int], num_tokens: int, on_read: OnRead = ignore) -> Iterator[object]:
        """Read and write."""
        prompt = [*self._cache.tokens, *tokens]
        events = Generation(
            self._model,
            self._cache,
            prompt,
            SamplingParams(temperature=0, repetition_penalty=1, max_tokens=num_tokens),
            limit_tokens=len(prompt) + num_tokens,
            cancel=CancelToken(),
        ).events()
        for event in events:
            if isinstance(event, PrefillProgress):
                on_read(event.done)
            elif isinstance(event, Token):
                yield event

    def took(self, token: int) -> None:
        """Commit the token."""
        self._cache.commit([token])

    def with_spec(self, kind: OctavoKind) -> OctavoSubject:
        """Return a subject with the same tokens, whose pages it shares, at another precision."""
        cache = self._cache.fork()
        cache.apply(kind.spec)
        return OctavoSubject(self._model, cache)

    @property
    def can_fork(self) -> bool:
        """Whether `with_spec` works: only where every layer is paged."""
        return self._cache.can_edit

    @property
    def nbytes(self) -> int:
        """Bytes of pages, open tokens, unused room and what is kept beside them."""
        return self._cache.nbytes

    @property
    def sealed_nbytes_per_token(self) -> float | None:
        """Bytes of a token in sealed pages; None where no page is full."""
        usage = self._cache.usage()
        sealed_tokens = usage.num_tokens - usage.open_tokens
        return usage.sealed_nbytes / sealed_tokens if sealed_tokens else None

    @property
    def caught(self) -> float | None:
        """Share of the attention mass within the attention budget; None where all is read."""
        return self._cache.usage().caught if self._cache.spec.attention_pages else None


def make_subject(model: Model, kind: CacheKind) -> MlxLmSubject | OctavoSubject:
    """Return an empty cache of a kind with its loop."""
    if isinstance(kind, MlxLmKind):
        return MlxLmSubject(model, kind)
    return OctavoSubject(model, SequenceCache(model.module, kind.spec))


def _nbytes_per_token(layer: Any) -> float:
    keys = layer.keys[0] if isinstance(layer.keys, tuple | list) else layer.keys
    return float(layer.nbytes / keys.shape[2])
