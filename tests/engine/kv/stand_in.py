"""A model whose keys and values follow from a token and its position alone, so that an oracle can know them.

Every layer attends to its own keys, which it computes from the embedding of the token; no layer reads what
another one wrote. The model gives the attention of all layers as its logits.
"""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import numpy.typing as npt
from mlx_lm.models.base import create_attention_mask, scaled_dot_product_attention

FloatArray = npt.NDArray[np.float32]

NUM_TOKENS = 4096
EMBEDDING_DIM = 24
NUM_POSITIONS = 8192
NAMESPACE = ModuleType("mlx_lm.models.stand_in")
"""Where the model looks its attention up, as mlx-lm's models do in their modules."""
NAMESPACE.scaled_dot_product_attention = scaled_dot_product_attention  # type: ignore[attr-defined]
sys.modules[NAMESPACE.__name__] = NAMESPACE


@dataclass(frozen=True)
class StandInShape:
    """What kind of attention the model has; `repeats` query heads share a KV head."""

    num_kv_heads: int = 2
    repeats: int = 2
    key_dim: int = 64
    value_dim: int = 64
    has_sinks: bool = False
    num_layers: int = 2

    @property
    def num_query_heads(self) -> int:
        return self.num_kv_heads * self.repeats

    @property
    def scale(self) -> float:
        return float(self.key_dim**-0.5)


@dataclass(frozen=True, eq=False)
class Weights:
    """One layer's projections, each `[EMBEDDING_DIM, heads * dim]`, and its sinks, `[query_heads]`."""

    queries: FloatArray
    keys: FloatArray
    values: FloatArray
    sinks: FloatArray | None


@functools.cache
def embeddings() -> FloatArray:
    """Return the embeddings of all tokens: `[NUM_TOKENS, EMBEDDING_DIM]`."""
    return np.random.default_rng(0).standard_normal((NUM_TOKENS, EMBEDDING_DIM), dtype=np.float32)


@functools.cache
def turns(dim: int) -> tuple[FloatArray, FloatArray]:
    """Return cosine and sine that each pair of a head turns by, each `[NUM_POSITIONS, dim / 2]`."""
    angles = np.arange(NUM_POSITIONS)[:, None] * 100.0 ** (-np.arange(dim // 2) / (dim // 2))
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@functools.lru_cache(maxsize=64)
def weights(shape: StandInShape, layer: int) -> Weights:
    """Return a layer's weights, the same at every call. Some channels of the keys are larger than others."""
    generator = np.random.default_rng(layer + 1)

    def matrix(columns: int) -> FloatArray:
        return generator.standard_normal((EMBEDDING_DIM, columns), dtype=np.float32) / EMBEDDING_DIM**0.5

    keys = matrix(shape.num_kv_heads * shape.key_dim)
    keys *= np.exp(generator.standard_normal(keys.shape[1], dtype=np.float32))
    sinks = generator.standard_normal(shape.num_query_heads, dtype=np.float32) + 2
    return Weights(
        matrix(shape.num_query_heads * shape.key_dim),
        keys,
        matrix(shape.num_kv_heads * shape.value_dim),
        sinks if shape.has_sinks else None,
    )


class StandInLayer(nn.Module):
    """Attention over the layer's own keys."""

    __module__ = NAMESPACE.__name__

    def __init__(self, shape: StandInShape, layer: int) -> None:
        super().__init__()
        own = weights(shape, layer)
        self._shape, self._turns = shape, tuple(map(mx.array, turns(shape.key_dim)))
        self.q_proj, self.k_proj, self.v_proj = map(mx.array, (own.queries, own.keys, own.values))
        self.sinks = None if own.sinks is None else mx.array(own.sinks)

    def __call__(self, embedded: mx.array, mask: Any, cache: Any) -> mx.array:
        """Return the attention, `[1, tokens, query_heads * value_dim]`."""
        shape, length = self._shape, embedded.shape[1]
        cos, sin = (table[cache.offset : cache.offset + length] for table in self._turns)

        def heads(matrix: mx.array, number: int) -> mx.array:
            return (embedded @ matrix).reshape(1, length, number, -1).swapaxes(1, 2)

        def rotated(array: mx.array) -> mx.array:
            first, second = mx.split(array, 2, axis=-1)
            return mx.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)

        queries = rotated(heads(self.q_proj, shape.num_query_heads))
        keys, values = rotated(heads(self.k_proj, shape.num_kv_heads)), heads(self.v_proj, shape.num_kv_heads)
        keys, values = cache.update_and_fetch(keys, values)
        output = NAMESPACE.scaled_dot_product_attention(
            queries, keys, values, cache=cache, scale=shape.scale, mask=mask, sinks=self.sinks
        )
        return output.swapaxes(1, 2).reshape(1, length, -1)


class StandIn(nn.Module):
    """Layers side by side."""

    __module__ = NAMESPACE.__name__

    def __init__(self, shape: StandInShape) -> None:
        super().__init__()
        self.embeddings = mx.array(embeddings())
        self.layers = [StandInLayer(shape, layer) for layer in range(shape.num_layers)]

    def __call__(self, tokens: mx.array, cache: Any) -> mx.array:
        """Return the attention of all layers, `[1, tokens, layers * query_heads * value_dim]`."""
        embedded = self.embeddings[tokens]
        mask = create_attention_mask(embedded, cache[0])
        return mx.concatenate(
            [layer(embedded, mask, own) for layer, own in zip(self.layers, cache, strict=True)], axis=-1
        )


@functools.lru_cache(maxsize=64)
def stand_in(shape: StandInShape) -> StandIn:
    """Return the model of this shape."""
    model = StandIn(shape)
    mx.eval(model.parameters())
    return model
