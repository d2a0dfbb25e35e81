"""mlx-lm's own way to keep what was read: `save_prompt_cache` and `load_prompt_cache`.

The model is the one that Octavo has loaded, so that both sides compute with the same weights and BLAS.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import KVCache, load_prompt_cache, save_prompt_cache

from engine.bench.kv.kinds import GROUP_SIZE, MLX_LM_16
from engine.bench.kv.mlx_lm import require_quantizable
from engine.bench.kv.subjects import MlxLmSubject
from engine.bench.prefix.figures import LoadedPromptCache, SavedPromptCache
from engine.model import Model

EXACT_BITS = 16
QUANTIZED_BITS = 4


def save(model: Model, tokens: Sequence[int], files: Mapping[int, Path]) -> tuple[SavedPromptCache, ...]:
    """Read tokens with mlx-lm's loop, then save its cache at each of the bits, each into its file.

    It is read at 16 bits and quantized afterwards, as mlx-lm does with what precedes `quantized_kv_start`:
    reading through its quantized attention takes several times as long and saves the same bytes.

    Raises:
        OctavoError: mlx-lm cannot quantize the cache of this model.
    """
    require_quantizable(model.module, model.info.name)
    subject = MlxLmSubject(model, MLX_LM_16)
    for _ in subject.stream(tokens, 1):
        pass
    return tuple(_saved(_at(subject.layers, bits), bits, file) for bits, file in files.items())


def load(model: Model, file: Path, question: Sequence[int], started_s: float) -> LoadedPromptCache:
    """Load a saved cache and read a question behind it.

    `started_s` is when the process was started, by the clock of the day.
    """
    begun_s = time.perf_counter()
    layers: list[Any] = load_prompt_cache(str(file))
    mx.eval([layer.state for layer in layers])  # mlx-lm leaves the reading for later
    loaded_s = time.perf_counter()
    subject = MlxLmSubject(model, MLX_LM_16)
    subject.layers = layers
    next(subject.stream(question, 1))
    return LoadedPromptCache(loaded_s - begun_s, time.perf_counter() - begun_s, time.time() - started_s)


def _at(layers: Sequence[Any], bits: int) -> list[Any]:
    if bits == EXACT_BITS:
        return list(layers)
    quantized = [
        layer.to_quantized(group_size=GROUP_SIZE, bits=bits) if type(layer) is KVCache else layer
        for layer in layers
    ]
    mx.eval([layer.state for layer in quantized])
    return quantized


def _saved(layers: Sequence[Any], bits: int, file: Path) -> SavedPromptCache:
    started_s = time.perf_counter()
    save_prompt_cache(str(file), list(layers))
    save_s = time.perf_counter() - started_s
    arrays: Any = tree_flatten([layer.state for layer in layers])
    nbytes = sum(array.nbytes for _, array in arrays if isinstance(array, mx.array))
    return SavedPromptCache(bits, layers[0].offset, nbytes, file.stat().st_size, save_s)
