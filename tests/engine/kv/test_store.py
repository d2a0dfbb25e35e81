"""Pages in a store: their bits, their bytes, and who they belong to."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.page import Page
from engine.kv.pool import Part
from engine.kv.precision import KV_BITS, BitsPair, KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from tests.engine.kv.oracle import key_steps, value_errors, value_steps
from tests.engine.kv.random_pages import random_kv, random_page, store_of

SHAPE = LayerShape(2, 64, 64)
TIERS = list(Tier)


def bits_of(page: Page, layer: int) -> list[str]:
    """Return the bits of a layer's heads as they are written, such as k8v4."""
    keys, values = page.keys[layer].bits.tolist(), page.values[layer].bits.tolist()
    return [str(BitsPair(*pair)) for pair in zip(keys, values, strict=True)]


def read(store: PageStore, page: Page, layer: int) -> tuple[np.ndarray, np.ndarray]:
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


def test_heads_and_layers_get_the_bits_that_the_rules_name() -> None:
    spec = KVSpec.parse("0-:4, 1.h1:8, 1.h0:k6v3; page=64")
    store = store_of(spec, SHAPE, SHAPE)
    cold, warm, hot = (random_page(store, spec, tier) for tier in (Tier.COLD, Tier.WARM, Tier.HOT))
    assert [bits_of(cold, layer) for layer in (0, 1)] == [["4", "4"], ["k6v3", "8"]]
    assert [bits_of(warm, layer) for layer in (0, 1)] == [["8", "8"], ["8", "8"]]
    assert [bits_of(hot, layer) for layer in (0, 1)] == [["16", "16"], ["16", "16"]]
    assert (hot.is_exact, warm.is_exact) == (True, False)


def test_a_page_with_one_quantized_head_is_not_exact() -> None:
    spec = KVSpec.parse("16, 1.h1:k16v8; page=64")
    store = store_of(spec, SHAPE, SHAPE)
    page = random_page(store, spec)
    assert not page.is_exact
    read_keys, read_values = read(store, page, 1)
    keys, values = random_kv(SHAPE, 64, 1000)
    assert np.array_equal(read_keys, keys)
    assert np.array_equal(read_values[0], values[0])
    assert not np.array_equal(read_values[1], values[1])


@pytest.mark.parametrize("bits", KV_BITS)
@pytest.mark.parametrize("shape", [LayerShape(2, 64, 64), LayerShape(1, 72, 72), LayerShape(3, 112, 80)])
def test_sealed_pages_take_the_bytes_that_the_formula_says(bits: int, shape: LayerShape) -> None:
    spec = KVSpec.parse(f"{bits}, 1:k8v4, 0.h0:3; page=128")
    store = store_of(spec, shape, shape)
    pages = [random_page(store, spec, seed=seed) for seed in range(5)]
    per_token = spec.kv_nbytes_per_token([shape, shape], activation_nbytes=4)
    assert used_nbytes(store) / (5 * 128) == pytest.approx(per_token, rel=0.02)
    assert {page.nbytes for page in pages} == {used_nbytes(store) // 5}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_lowering_costs_a_step_of_the_new_bits_at_most(data: st.DataObject) -> None:
    pairs = st.builds(BitsPair, st.sampled_from(KV_BITS), st.sampled_from(KV_BITS))
    spec = KVSpec.parse("16; page=64")
    store = store_of(spec, SHAPE)
    page, other = random_page(store, spec, Tier.HOT), random_page(store, spec, Tier.HOT, seed=1)
    for _ in range(data.draw(st.integers(1, 4))):
        wanted = [data.draw(pairs) for _ in range(2)]
        new = KVSpec.parse(f"0-.h0:{wanted[0]}, 0-.h1:{wanted[1]}; page=64")
        old_bits = np.array([page.keys[0].bits, page.values[0].bits])
        old_keys, old_values = read(store, page, 0)
        version = store.version
        expected = np.minimum(old_bits, [[pair.keys for pair in wanted], [pair.values for pair in wanted]])
        assert store.lower(page, Tier.COLD, new) == (expected < old_bits).any()
        assert (store.version > version) == (expected < old_bits).any()
        assert page.keys[0].bits.tolist() == expected[0].tolist()
        assert page.values[0].bits.tolist() == expected[1].tolist()
        keys, values = read(store, page, 0)
        for head in range(2):
            key_bits, value_bits = expected[:, head].tolist()
            if key_bits == old_bits[0, head]:
                assert np.array_equal(keys[head], old_keys[head])
            else:
                steps = key_steps(old_keys[head].T, key_bits, 64).T
                assert (np.abs(keys[head] - old_keys[head]) <= steps + 1e-5).all()
            if value_bits == old_bits[1, head]:
                assert np.array_equal(values[head], old_values[head])
            else:
                steps = value_steps(old_values[head], value_bits, 64)
                assert (value_errors(values[head], old_values[head]) <= steps + 1e-5).all()
        assert page.nbytes + other.nbytes == used_nbytes(store)
    assert np.array_equal(read(store, other, 0)[0], random_kv(SHAPE, 64, 1)[0])


@pytest.mark.parametrize(("first", "second"), [(a, b) for a in TIERS for b in TIERS])
def test_a_page_never_goes_up(first: Tier, second: Tier) -> None:
    spec = KVSpec.parse("4; page=64")
    store = store_of(spec, SHAPE)
    page = random_page(store, spec, first)
    before = read(store, page, 0)
    moved = store.lower(page, second, spec)
    lower = max(first, second, key=TIERS.index)
    assert page.tier is lower
    assert bits_of(page, 0) == [str(spec.tier_bits(lower, 0, head)) for head in range(2)]
    assert moved == (lower is not first)
    assert np.array_equal(read(store, page, 0)[0], before[0]) != moved


def test_a_page_lives_as_long_as_it_is_referred_to() -> None:
    spec = KVSpec.parse("4; page=64")
    store = store_of(spec, SHAPE)
    page = random_page(store, spec)
    store.retain(page)
    store.release(page)
    store.defragment()
    assert store.pages == {page}
    assert store.nbytes == page.nbytes
    store.release(page)
    assert store.pages == set()
    store.defragment()
    assert store.nbytes == 0


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pages_keep_their_content_when_others_are_freed_and_gaps_are_closed(data: st.DataObject) -> None:
    spec = KVSpec.parse("4, 0.h1:16; page=64")
    store = store_of(spec, SHAPE)
    count = data.draw(st.integers(2, 24))
    tiers = [data.draw(st.sampled_from(TIERS)) for _ in range(count)]
    pages = [random_page(store, spec, tier, seed=seed) for seed, tier in enumerate(tiers)]
    content = {page: read(store, page, 0) for page in pages}
    for page in sorted(data.draw(st.sets(st.sampled_from(pages))), key=lambda page: page.number):
        store.release(page)
        del content[page]
        if data.draw(st.booleans()):
            store.defragment()
    store.defragment()
    assert store.pages == set(content)
    for page, (keys, values) in content.items():
        assert np.array_equal(read(store, page, 0)[0], keys)
        assert np.array_equal(read(store, page, 0)[1], values)
    for pool in (store.pool(0, part, bits) for part in Part for bits in KV_BITS):
        assert pool.num_free <= pool.growth
    assert used_nbytes(store) == sum(page.nbytes for page in content)


def test_what_moves_is_known_by_the_version() -> None:
    spec = KVSpec.parse("4; page=64")
    store = store_of(spec, SHAPE)
    pages = [random_page(store, spec, seed=seed) for seed in range(6)]
    for page in pages[:3]:
        store.release(page)
    version, slots = store.version, pages[5].keys[0].slots.tolist()
    store.defragment()
    assert pages[5].keys[0].slots.tolist() != slots
    assert store.version > version
    version = store.version
    store.defragment()
    assert store.version == version


def test_lowering_copies_one_layer_at_a_time_and_gives_the_memory_back() -> None:
    spec = KVSpec.parse("8; page=512")
    store = store_of(spec, *[SHAPE] * 8)
    pages = [random_page(store, spec, Tier.HOT, seed=seed) for seed in range(2)]
    store.defragment()
    exact_nbytes, before = store.nbytes, mx.get_active_memory()
    mx.reset_peak_memory()
    for page in pages:
        store.lower(page, Tier.COLD, spec)
    assert mx.get_peak_memory() - before < used_nbytes(store) + 4 * exact_nbytes / 2 / 8
    store.defragment()
    assert store.nbytes == used_nbytes(store) < 0.3 * exact_nbytes
    assert before - mx.get_active_memory() == pytest.approx(exact_nbytes - store.nbytes, rel=0.02)
