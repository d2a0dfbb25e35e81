"""Attention in the 16-bit types that models have on a GPU, next to float64 in numpy.

Pages at 16 bits are left out: MLX's `gather_mm` takes only float32 on the CPU, where activations are float32.
"""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.kv.heat import Watcher
from engine.kv.layer import PagedLayer
from engine.kv.page_table import PageTable
from engine.kv.precision import KVSpec, LayerShape, Tier
from engine.kv.store import PageStore

HEADS, REPEATS, DIM, PAGE_TOKENS = 2, 2, 64, 64


def layer_of(keys: mx.array, values: mx.array, bits: str) -> PagedLayer:
    """Return a layer with tokens, each array `[1, HEADS, tokens, DIM]`, in cold pages; the rest is open."""
    spec = KVSpec.parse(f"{bits}; page={PAGE_TOKENS}, hot=0, warm=0")
    store = PageStore({0: LayerShape(HEADS, DIM, DIM)}, PAGE_TOKENS, spec.group_size)
    layer = PagedLayer(0, Watcher())
    layer.table = PageTable(store)
    layer.update_and_fetch(keys, values)
    layer.table.append(range(keys.shape[2]))
    while len(layer.table.open_tokens) >= PAGE_TOKENS:
        numbers = list(range(PAGE_TOKENS))
        page = store.seal(
            numbers, numbers, lambda _: layer.open_page(PAGE_TOKENS, PAGE_TOKENS), Tier.COLD, spec
        )
        layer.drop_open(PAGE_TOKENS)
        layer.table.add_page(page)
    return layer


def expected(queries: mx.array, layer: PagedLayer) -> np.ndarray:
    """Return the attention of `queries`, `[1, heads, 1, DIM]`, over what the layer holds, in float64."""
    keys, values = (np.array(array.astype(mx.float32), dtype=np.float64)[0] for array in layer.dense())
    own = np.array(queries.astype(mx.float32), dtype=np.float64).reshape(HEADS, REPEATS, DIM) / DIM**0.5
    scores = own @ keys.swapaxes(1, 2)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) @ values).reshape(1, HEADS * REPEATS, 1, DIM)


@pytest.mark.parametrize("bits", ["8", "k4v2"])
def test_a_long_text_of_like_tokens_does_not_leave_the_range_of_float16(bits: str) -> None:
    shape = (1, HEADS, 300 * PAGE_TOKENS + 5, DIM)
    layer = layer_of(mx.zeros(shape, mx.float16), mx.full(shape, 8, mx.float16), bits)
    attended = layer.attend(mx.zeros((1, HEADS * REPEATS, 1, DIM), mx.float16), DIM**-0.5, None, None)
    assert attended.dtype == mx.float16
    np.testing.assert_allclose(np.array(attended), 8, rtol=0.01)


@pytest.mark.parametrize("bits", ["8", "4"])
@pytest.mark.parametrize(("dtype", "error"), [(mx.float16, 0.003), (mx.bfloat16, 0.02)])
def test_attention_in_a_16_bit_type_is_as_near_as_the_type_allows(
    bits: str, dtype: mx.Dtype, error: float
) -> None:
    mx.random.seed(3)
    keys, values = (mx.random.normal((1, HEADS, 20 * PAGE_TOKENS + 9, DIM)).astype(dtype) for _ in range(2))
    layer = layer_of(keys, values, bits)
    queries = mx.random.normal((1, HEADS * REPEATS, 1, DIM)).astype(dtype)
    attended = np.array(layer.attend(queries, DIM**-0.5, None, None).astype(mx.float32))
    wanted = expected(queries, layer)
    assert np.abs(attended - wanted).max() < error * np.abs(wanted).max()


def test_open_tokens_are_attended_to_in_float32() -> None:
    mx.random.seed(3)
    keys, values = (mx.random.normal((1, HEADS, 40, DIM)).astype(mx.bfloat16) for _ in range(2))
    layer = layer_of(keys * 8, values, "16")
    queries = (mx.random.normal((1, HEADS * REPEATS, 1, DIM)) * 8).astype(mx.bfloat16)
    attended = layer.attend(queries, DIM**-0.5, None, None)
    wanted = mx.array(expected(queries, layer).astype(np.float32)).astype(mx.bfloat16)
    # Scores of some 60 would be off by 0.25 in bfloat16, and their weights by a quarter.
    np.testing.assert_allclose(
        np.array(attended.astype(mx.float32)), np.array(wanted.astype(mx.float32)), atol=0.008
    )
