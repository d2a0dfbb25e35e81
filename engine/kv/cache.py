"""The KV cache of one sequence, behind one interface.

The layers are mlx-lm's own caches: `KVCache` at 16 bits, `QuantizedKVCache` at 8 or 4. A layer that mlx-lm
cannot quantize (sliding-window, recurrent, latent attention, or a head that no group size divides) keeps
mlx-lm's cache as it is, and `SequenceCache.note` says so.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map
from mlx_lm.models.cache import KVCache, QuantizedKVCache, make_prompt_cache

from engine.kv.precision import KVBits, group_size_for

log = logging.getLogger(__name__)


class SequenceCache:
    """Keys and values of one sequence of tokens, for every layer of a model.

    Attributes:
        layers: one mlx-lm cache per layer, the object that the model's forward pass takes.
        tokens: ids of the tokens whose keys and values are held, in order.
        bits: the precision that was asked for.
        note: one sentence where some layers could not take that precision, else None.
        before_layer: called before each layer takes new keys; it may raise to leave the forward pass.
    """

    def __init__(self, module: nn.Module, bits: KVBits, head_dim: int) -> None:
        self.bits = bits
        self.before_layer: Callable[[mx.array], None] | None = None
        self._module = module
        self._group_size = None if bits is KVBits.BITS_16 else group_size_for(head_dim)
        self.clear()
        if self._group_size is not None:
            self._group_size = self._group_size if self._runs() else None
            self.clear()

    def clear(self) -> None:
        """Forget all tokens."""
        self.tokens: list[int] = []
        self.layers = [self._at_precision(layer) for layer in make_prompt_cache(self._module)]
        self.note = self._what_stayed()
        for layer in self.layers:
            self._watch(layer)

    def _runs(self) -> bool:
        """Try two tokens: attention with sinks, soft caps or latent keys fails on a quantized cache."""
        try:
            mx.eval(self._module(mx.zeros((1, 2), dtype=mx.int32), cache=self.layers))
        except Exception as error:
            log.info("This model's attention takes no quantized cache: %s", error)
            return False
        return True

    def _at_precision(self, layer: Any) -> Any:
        if self._group_size is None or type(layer) is not KVCache:
            return layer
        return QuantizedKVCache(group_size=self._group_size, bits=int(self.bits))

    def _what_stayed(self) -> str | None:
        kept = sum(not isinstance(layer, QuantizedKVCache) for layer in self.layers)
        if self.bits is KVBits.BITS_16 or not kept:
            return None
        return (
            f"{kept} of {len(self.layers)} layers keep their cache at 16 bits: "
            f"this kind of attention cannot be quantized to {int(self.bits)} bits."
        )

    def _watch(self, layer: Any) -> None:
        """Let `before_layer` run before a layer takes new keys and values.

        Nothing here may refer back to the layer: it would keep its arrays until Python looks for cycles.
        """
        update_and_fetch = getattr(type(layer), "update_and_fetch", None)
        if update_and_fetch is None:
            return
        owner, watched_layer = weakref.ref(self), weakref.ref(layer)

        def watched(keys: mx.array, values: mx.array) -> Any:
            cache = owner()
            if cache is not None and cache.before_layer is not None:
                cache.before_layer(keys)
            return update_and_fetch(watched_layer(), keys, values)

        layer.update_and_fetch = watched

    @property
    def state(self) -> list[Any]:
        """The arrays of all layers, to be evaluated after a prefill chunk."""
        return [layer.state for layer in self.layers if not layer.empty()]

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, scales and biases and unused room included."""
        return sum(layer.nbytes for layer in self.layers if not layer.empty())

    def truncate(self, length: int) -> bool:
        """Forget all tokens from `length` on; return False, unchanged, where a layer cannot do that."""
        surplus = len(self.tokens) - length
        if surplus > 0:
            if not all(layer.is_trimmable() for layer in self.layers):
                return False
            for layer in self.layers:
                layer.trim(surplus)
            del self.tokens[length:]
            self._give_back_room()
        return True

    def _give_back_room(self) -> None:
        """Free what lies behind the tokens where it is most of the cache: `trim` keeps all of it."""
        for layer in self.layers:
            if type(layer) not in (KVCache, QuantizedKVCache) or layer.empty():
                continue
            keys: Any = layer.keys
            room = (keys[0] if isinstance(layer, QuantizedKVCache) else keys).shape[2]
            kept = max(1, -(-layer.offset // layer.step)) * layer.step
            if room > 2 * kept:
                layer.keys, layer.values = tree_map(
                    lambda array, kept=kept: mx.contiguous(array[..., :kept, :]), (layer.keys, layer.values)
                )
                mx.eval(layer.keys, layer.values)
        mx.clear_cache()

    def realign(self) -> None:
        """Bring all layers back to `tokens` after a forward pass that was left half-way.

        Where a layer cannot go back, everything is forgotten.
        """
        length = len(self.tokens)
        if all(layer.is_trimmable() for layer in self.layers):
            for layer in self.layers:
                layer.trim(max(0, layer.offset - length))
        else:
            self.clear()

    def common_prefix(self, tokens: Sequence[int]) -> int:
        """Return how many tokens at the start of `tokens` are held already."""
        for position, (held, wanted) in enumerate(zip(self.tokens, tokens, strict=False)):
            if held != wanted:
                return position
        return min(len(self.tokens), len(tokens))
