"""Caches of the stand-in model, and what they hold."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec, LayerShape
from tests.engine.kv.oracle import Text, held, true_kv
from tests.engine.kv.stand_in import StandInShape, stand_in

SHAPE = StandInShape()
"""Two layers with two KV heads of 64: 512 numbers a token."""
LAYER_SHAPES = [LayerShape(2, 64, 64)] * 2
PAGE_NBYTES = {16: 64 * 512 * 4, 8: 64 * 512 * 9 // 8, 4: 64 * 512 * 5 // 8}
"""Bytes of a page of 64 tokens with float32 scales and biases in groups of 64."""


def cache_of(spec: str, num_tokens: int = 0, shape: StandInShape = SHAPE) -> SequenceCache:
    """Return a cache of the stand-in model that has read the tokens 1, 2, 3..."""
    cache = SequenceCache(stand_in(shape), KVSpec.parse(spec))
    if num_tokens:
        cache.read(range(1, num_tokens + 1))
    return cache


def text_of(cache: SequenceCache) -> Text:
    table = cache.layers[0].table
    return Text(table.tokens, table.positions, table.next_position)


def holds_exactly(cache: SequenceCache, text: Text) -> bool:
    """Return whether the cache holds a text's keys and values at 16 bits."""
    assert text_of(cache) == text
    return all(
        np.allclose(read, true, atol=1e-4)
        for layer in range(SHAPE.num_layers)
        for read, true in zip(
            held(cache, text, SHAPE, layer),
            true_kv(SHAPE, layer, text.tokens, text.positions),
            strict=True,
        )
    )


def text(num_tokens: int) -> Text:
    new = Text()
    new.append(range(1, num_tokens + 1))
    return new


def tiers(cache: SequenceCache) -> str:
    return "".join(page.tier.value[0] for page in cache.pages())


def bits(cache: SequenceCache) -> list[str]:
    """Return the bits of each page, the heads of both layers one after another."""
    return [" ".join(str(pair) for heads in page.bits.values() for pair in heads) for page in cache.pages()]


def active_nbytes() -> int:
    """Return the bytes of all arrays that are alive."""
    mx.clear_cache()
    return int(mx.get_active_memory())
