"""Pages of random keys and values in a store of their own."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np

from engine.kv.page import Page
from engine.kv.pool import Part
from engine.kv.precision import KV_BITS, BitsPair, KVSpec, LayerShape, Tier
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


def bits_of(page: Page, layer: int) -> list[str]:
    """Return the bits of a layer's heads as they are written, such as k8v4."""
    keys, values = page.keys[layer].bits.tolist(), page.values[layer].bits.tolist()
    return [str(BitsPair(*pair)) for pair in zip(keys, values, strict=True)]


def read(store: PageStore, page: Page, layer: int) -> tuple[FloatArray, FloatArray]:
    """Return a page's keys and values as they are held, shaped as those of `random_kv`."""
    keys, values = store.read(page, layer)
    return np.array(keys), np.array(values)


def used_nbytes(store: PageStore) -> int:
    """Return the bytes of the arrays of all pools, without those of free slots."""
    nbytes = 0
    for layer in store.shapes:
        for pool in (store.pool(layer, part, bits) for part in Part for bits in KV_BITS):
            total = sum(array.nbytes for array in pool.arrays)
            nbytes += total - pool.num_free * (total // len(pool.arrays[0]) if pool.arrays else 0)
    return nbytes


def bounds_nbytes(store: PageStore) -> int:
    """Return the bytes that the store counts beside the arrays of its pools."""
    pools = [store.pool(layer, part, bits) for layer in store.shapes for part in Part for bits in KV_BITS]
    return store.nbytes - sum(array.nbytes for pool in pools for array in pool.arrays)
