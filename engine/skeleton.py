"""mlx-lm's model of a config without its weights: what its layers cache, and how many numbers it has.

Everything here is lazy: shapes and types are known, nothing is ever computed, so that a model of any size is
built within a fraction of a second.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import ArraysCache, ChunkedKVCache, ConcatenateKVCache, KVCache, RotatingKVCache
from mlx_lm.utils import _decode_tagged_floats, _get_classes

from engine.errors import ModelError
from engine.kv.heat import Watcher
from engine.kv.layer import PagedLayer
from engine.kv.layers import make_layers, parts_of
from engine.kv.precision import LayerShape
from engine.kv.room import OwnCache
from engine.model_info import CachedLayers
from engine.wording import first_line

COMPUTES = frozenset({"dbrx"})
"""Model types of mlx-lm whose forward pass looks at numbers, for which all weights would be made."""

_ACTIVATIONS = mx.bfloat16
"""Stands for the type of the activations, whatever that will be; other types are kept as they are."""


def build_skeleton(config: dict[str, Any]) -> nn.Module:
    """Return mlx-lm's model of a config, none of its weights made.

    Raises:
        ModelError: mlx-lm raises or exits.
    """
    try:
        config = _decode_tagged_floats(config)
        model_class, arguments = _get_classes(config)
        module: nn.Module = model_class(arguments.from_dict(config)).eval()
        module.set_dtype(_ACTIVATIONS)
    except (Exception, SystemExit) as error:
        # mlx-lm's classes raise whatever a config leads them to, and one of them ends the program.
        raise ModelError(
            f"mlx-lm cannot make a {config['model_type']} model of this config ({first_line(error)})."
        ) from error
    return module


def cached_layers(module: nn.Module) -> CachedLayers:
    """Return what the layers of a skeleton cache, found by a forward pass that is never evaluated.

    Raises:
        ModelError: the forward pass fails or would compute, or a cache is of an unknown kind.
    """
    if type(module).__module__.rpartition(".")[2] in COMPUTES:
        raise ModelError("Its forward pass cannot be tried without computing.")
    try:
        made = make_layers(module, Watcher())
        layers, shapes = made.caches, made.shapes
        module(mx.zeros((1, 1), dtype=mx.int32), cache=layers)
    except Exception as error:
        raise ModelError(f"Its forward pass cannot be tried ({first_line(error)}).") from error
    nothing = LayerShape(0, 0, 0)
    paged = tuple(shapes.get(number, nothing) for number in range(len(layers)))
    kept = [layer for layer in layers if not isinstance(layer, PagedLayer)]
    own = (_own_cache(part) for part in parts_of(kept))
    return CachedLayers(paged, tuple(cache for cache in own if cache != OwnCache()))


def _own_cache(part: Any) -> OwnCache:
    """Return what one of mlx-lm's caches takes, from the shapes that it has after one token."""
    if isinstance(part, ArraysCache):
        held: list[Any] = part.cache
        arrays = [array for array in held if array is not None]
        numbers = sum(array.size for array in arrays if array.dtype == _ACTIVATIONS)
        return OwnCache(
            state_numbers=numbers,
            state_nbytes=sum(array.nbytes for array in arrays if array.dtype != _ACTIVATIONS),
        )
    if not isinstance(part, KVCache | ConcatenateKVCache | RotatingKVCache | ChunkedKVCache):
        raise ModelError(f"Its cache {type(part).__name__} is of an unknown kind.")
    if part.keys is None:  # a layer that shares another's
        return OwnCache()
    pair: tuple[Any, Any] = (part.keys, part.values)
    numbers = sum(array.shape[1] * array.shape[3] for array in pair)
    if isinstance(part, RotatingKVCache):
        return OwnCache(numbers, part.max_size)
    return OwnCache(numbers, part.chunk_size if isinstance(part, ChunkedKVCache) else None)


def settings_of(module: nn.Module) -> dict[str, Any]:
    """Return the settings of the language model in a skeleton, those that its config leaves to mlx-lm too."""
    settings: dict[str, Any] = {}
    for part in (module, getattr(module, "language_model", None)):
        arguments = getattr(part, "args", None)
        if dataclasses.is_dataclass(arguments):
            settings |= {name: value for name, value in vars(arguments).items() if value is not None}
    return settings
