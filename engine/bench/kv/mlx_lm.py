"""mlx-lm's caches, and one that attends over what they store without their slow attention."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.cache import KVCache, QuantizedKVCache, create_attention_mask, make_prompt_cache

from engine.bench.kv.kinds import GROUP_SIZE, MLX_LM_4, MlxLmKind
from engine.errors import OctavoError


class DequantizedKVCache:
    """mlx-lm's `QuantizedKVCache` that hands out its stored keys and values dequantized.

    On a CPU mlx-lm's own attention over packed arrays is scalar code; over the dequantized ones a layer's
    attention is the same to rounding and many times faster. For measuring what quantizing costs in quality,
    not in time.

    With `page_tokens` the tokens behind the last whole page are handed out as they came, as in our cache the
    open page is.
    """

    def __init__(self, bits: int, page_tokens: int | None = None) -> None:
        self._store = QuantizedKVCache(GROUP_SIZE, bits)
        self._page_tokens = page_tokens
        self._recent: list[mx.array] | None = None

    @property
    def offset(self) -> int:
        """Tokens held."""
        return int(self._store.offset)

    @property
    def state(self) -> list[Any]:
        """All arrays, to be evaluated after a forward pass."""
        return [self._store.keys, self._store.values, self._recent]

    @property
    def nbytes(self) -> int:
        """Bytes of the packed arrays and of the window, unused room included."""
        return int(self._store.nbytes) + sum(array.nbytes for array in self._recent or ())

    def empty(self) -> bool:
        """Whether no token is held."""
        return bool(self._store.empty())

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None) -> Any:
        """Return mlx-lm's mask for `N` new tokens."""
        return create_attention_mask(N, self.offset, return_array, window_size)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Take new keys and values, each `[1, kv_heads, tokens, head_dim]`, and return all of them."""
        before = self.offset
        stored = self._store.update_and_fetch(keys, values)
        dense = [_dequantized(arrays, self._store.bits) for arrays in stored]
        if self._page_tokens:
            sealed = before // self._page_tokens * self._page_tokens
            recent = [keys, values]
            if self._recent is not None:
                recent = [
                    mx.concatenate([old, new], axis=2)[:, :, -(self.offset - sealed) :]
                    for old, new in zip(self._recent, recent, strict=True)
                ]
            self._recent = recent
            dense = [
                mx.concatenate([old[:, :, :sealed], new], axis=2)
                for old, new in zip(dense, recent, strict=True)
            ]
        return dense[0], dense[1]


def _dequantized(arrays: tuple[mx.array, mx.array, mx.array], bits: int) -> mx.array:
    packed, scales, biases = arrays
    return mx.dequantize(packed, scales, biases, group_size=GROUP_SIZE, bits=bits)


def mlx_lm_layers(module: nn.Module, kind: MlxLmKind) -> list[Any]:
    """Return mlx-lm's caches; those of layers that it cannot quantize stay as they are."""
    layers: list[Any] = make_prompt_cache(module)
    if kind.bits == 16:
        return layers
    return [QuantizedKVCache(GROUP_SIZE, kind.bits) if type(one) is KVCache else one for one in layers]


def dequantized_layers(module: nn.Module, kind: MlxLmKind) -> list[Any]:
    """Return the same with attention over dequantized arrays."""
    layers: list[Any] = make_prompt_cache(module)
    if kind.bits == 16:
        return layers
    return [
        DequantizedKVCache(kind.bits, kind.page_tokens) if type(one) is KVCache else one for one in layers
    ]


def require_quantizable(module: nn.Module, name: str) -> None:
    """Raise an `OctavoError` when mlx-lm's quantized cache does not take a model, by trying it."""
    try:
        mx.eval(module(mx.zeros((1, 2), dtype=mx.int32), cache=mlx_lm_layers(module, MLX_LM_4)))
    except Exception as error:
        # mlx-lm and MLX raise whatever a head size or an attention that does not fit leads them to.
        raise OctavoError(
            f"mlx-lm cannot quantize the KV cache of {name}, so there is nothing to compare ({error})."
        ) from error
