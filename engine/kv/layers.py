"""Which cache each layer of a model gets.

Which layers can be paged, and whether the model's attention reads pages, is tried rather than listed by name:
two forward passes are built, of two tokens and of one, and never evaluated.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import (
    ArraysCache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    RotatingKVCache,
    make_prompt_cache,
)

from engine.kv.dispatch import dispatch_attention
from engine.kv.heat import Watcher
from engine.kv.layer import PagedLayer
from engine.kv.precision import LayerShape

log = logging.getLogger(__name__)

_TRIAL_TOKENS = (2, 1)
_KINDS = {RotatingKVCache: "sliding-window", ChunkedKVCache: "chunked", ArraysCache: "recurrent"}


@dataclass(frozen=True, eq=False)
class ModelLayers:
    """What a model's layers cache.

    Attributes:
        caches: one for each layer.
        shapes: of the paged ones, by number.
        types: the activation types of these, of keys and of values, by number.
        note: what the user should know, None for nothing.
    """

    caches: list[Any]
    shapes: dict[int, LayerShape]
    types: dict[int, tuple[mx.Dtype, ...]]
    note: str | None


def make_layers(module: nn.Module, watcher: Watcher) -> ModelLayers:
    """Return a cache for each layer, and what is known of the paged ones before anything is read.

    Layers with full attention are paged; the others keep mlx-lm's own cache, and so do all those of latent
    attention, whose one vector for all heads is small already and bears no quantizing by channel.

    A number is the index among mlx-lm's caches. That is the layer's number in the model, save where layers
    without one come in between, as in `nemotron_h`. Layers that share another's keys (`gemma3n`) come last.
    """
    dispatch_attention(module)
    gives_views = True
    trial = _try(module, gives_views)
    if trial is None:
        gives_views = False
        trial = _try(module, gives_views) or {}
    trial_shapes = {number: layer.shape for number, layer in trial.items() if layer.shape is not None}
    shapes = {number: shape for number, shape in trial_shapes.items() if gives_views or not _is_latent(shape)}
    layers: list[Any] = []
    for number, layer in enumerate(make_prompt_cache(module)):
        layers.append(PagedLayer(number, watcher) if number in shapes else watched(layer, watcher))
        if number in shapes:
            layers[-1].gives_views = gives_views
    types = {number: tuple(array.dtype for array in trial[number].state) for number in shapes}
    return ModelLayers(layers, shapes, types, _note(layers, trial_shapes, gives_views))


def _try(module: nn.Module, gives_views: bool) -> dict[int, PagedLayer] | None:
    """Return the layers that took a paged cache, by number; None where the model's attention takes none."""
    layers = make_prompt_cache(module)
    paged = [
        PagedLayer(number, Watcher()) if type(layer) is KVCache else None
        for number, layer in enumerate(layers)
    ]
    caches = [page or layer for page, layer in zip(paged, layers, strict=True)]
    for layer in filter(None, paged):
        layer.gives_views = gives_views
    try:
        for num_tokens in _TRIAL_TOKENS:
            module(mx.zeros((1, num_tokens), dtype=mx.int32), cache=caches)
    except Exception as error:
        log.info("This model's attention takes no %s: %s", "views" if gives_views else "paged cache", error)
        return None
    used = [layer for layer in paged if layer is not None and layer.shape is not None]
    if gives_views and any(layer.num_dispatched < len(_TRIAL_TOKENS) for layer in used):
        return None
    return {layer.number: layer for layer in used}


def _is_latent(shape: LayerShape) -> bool:
    """Whether these are a compressed vector and its rotary part instead of keys and values.

    Guessed from their shape. One KV head with keys and values of unequal size (multi-query attention) looks
    the same, so where a model takes no views such layers are not paged either.
    """
    return shape.num_kv_heads == 1 and shape.key_dim != shape.value_dim


def _note(layers: list[Any], trial: dict[int, LayerShape], gives_views: bool) -> str | None:
    kept = [number for number, layer in enumerate(layers) if not isinstance(layer, PagedLayer)]
    copying = (
        "" if gives_views else "its attention cannot read pages where they lie, so each step copies them"
    )
    if not kept:
        return f"This model runs slower with pages: {copying}." if copying else None
    kinds = sorted({_kind(layers[number], number in trial) for number in kept})
    stays = f"{' and '.join(kinds)}: mlx-lm's own cache at 16 bits, not in pages"
    if len(kept) == len(layers):
        return f"This model's layers are {stays}."
    paged = f"the other {len(layers) - len(kept)} are paged" + (f", but {copying}" if copying else "")
    return f"{len(kept)} of {len(layers)} layers are {stays}; {paged}."


def _kind(layer: Any, is_latent: bool) -> str:
    """Return what sets a layer apart, in a word."""
    if is_latent:
        return "of latent attention"
    return next((word for kind, word in _KINDS.items() if isinstance(layer, kind)), "of a kind of their own")


def parts_of(layers: Iterable[Any]) -> Iterator[Any]:
    """Yield caches one by one, also those that mlx-lm keeps in a list for one layer."""
    for layer in layers:
        if isinstance(layer, CacheList):
            yield from parts_of(layer.caches)
        else:
            yield layer


def trim_to(layers: Sequence[Any], length: int) -> bool:
    """Have mlx-lm's caches forget all tokens from `length` on; return False, unchanged, where one cannot.

    After a pass that was left half-way they hold unequal numbers of tokens, even within one layer.
    """
    parts = list(parts_of(layers))
    if not all(_can_trim(part, length) for part in parts):
        return False
    for part in parts:
        part.trim(max(0, part.offset - length))
    return True


def _can_trim(layer: Any, length: int) -> bool:
    if isinstance(layer, ChunkedKVCache):
        # It has lost the beginning of an older chunk, but does not say so.
        return bool(layer.start_position <= length - length % layer.chunk_size)
    return bool(layer.is_trimmable())


def watched(layer: Any, watcher: Watcher) -> Any:
    """Let `watcher.before_layer` run before one of mlx-lm's caches takes new keys; return that cache.

    Recurrent caches take no keys and are left alone.
    """
    for part in parts_of([layer]):
        if hasattr(part, "update_and_fetch"):
            _watch(part, watcher)
    return layer


def can_be_left(layers: Sequence[Any]) -> bool:
    """Whether a forward pass with these caches, paged ones included, can be left half-way and be undone.

    Recurrent caches neither run `before_layer` nor go back, and a window does not once it is full.
    """
    return all(
        isinstance(part, PagedLayer) or (part.is_trimmable() and not isinstance(part, RotatingKVCache))
        for part in parts_of(layers)
    )


def _watch(part: Any, watcher: Watcher) -> None:
    """Run the watcher before a cache takes new keys.

    Nothing here may refer back to the cache: it would keep its arrays until Python looks for cycles.
    """
    update_and_fetch = type(part).update_and_fetch
    watched_part = weakref.ref(part)

    def watched_update(keys: mx.array, values: mx.array) -> Any:
        if watcher.before_layer is not None:
            watcher.before_layer(keys)
        return update_and_fetch(watched_part(), keys, values)

    part.update_and_fetch = watched_update
