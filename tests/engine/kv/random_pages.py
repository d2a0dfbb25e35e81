"""Pages of random keys and values in a store of their own."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from engine.kv.page import Page
from engine.kv.precision import KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from tests.engine.kv.stand_in import FloatArray


def store_of(spec: KVSpec, *shapes: LayerShape) -> PageStore:
    return PageStore(dict(enumerate(shapes)), spec.page_tokens, spec.group_size)


def random_kv(shape: LayerShape, page_tokens: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return a page's keys `[heads, key_dim, page_tokens]` and values `[heads, page_tokens, value_dim]`."""
    generator = np.random.default_rng(seed)
    heads = shape.num_kv_heads
    keys = generator.standard_normal((heads, shape.key_dim, page_tokens), dtype=np.float32)
    keys += 2 * generator.standard_normal((heads, shape.key_dim, 1), dtype=np.float32)
    return keys, generator.standard_normal((heads, page_tokens, shape.value_dim), dtype=np.float32)


def random_page(
    store: PageStore, spec: KVSpec, tier: Tier = Tier.COLD, *, seed: int = 0, tokens: Sequence[int] = ()
) -> Page:
    """Seal a page with one reference; layer `n` has the keys and values of seed + 1,000 n."""

    def arrays(layer: int) -> tuple[mx.array, mx.array]:
        keys, values = random_kv(store.shapes[layer], store.page_tokens, seed + 1000 * layer)
        return mx.array(keys), mx.array(values)

    ids = tokens or range(store.page_tokens)
    page = store.seal(ids, range(len(ids)), arrays, tier, spec)
    store.retain(page)
    return page
