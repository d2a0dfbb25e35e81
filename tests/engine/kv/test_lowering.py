"""Pages that are brought down to fewer bits."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import Cancelled
from engine.kv.precision import KV_BITS, BitsPair, KVSpec, LayerShape, Tier
from tests.engine.kv.oracle import key_steps, value_errors, value_steps
from tests.engine.kv.random_pages import (
    bits_of,
    random_kv,
    random_page,
    read,
    store_of,
    used_nbytes,
)

SHAPE = LayerShape(2, 64, 64)
TIERS = list(Tier)


@settings(max_examples=40)
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
        store.lower_all([(page, Tier.COLD)], new)
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
    store.lower_all([(page, second)], spec)
    lower = max(first, second, key=TIERS.index)
    assert page.tier is lower
    assert bits_of(page, 0) == [str(spec.tier_bits(lower, 0, head)) for head in range(2)]
    assert np.array_equal(read(store, page, 0)[0], before[0]) == (lower is first)


def test_lowering_gives_memory_back_layer_by_layer() -> None:
    spec, copy_nbytes = KVSpec.parse("8; page=64"), 64 * 64 * 64 * 4
    store = store_of(spec, *[SHAPE] * 8)
    pages = [random_page(store, spec, Tier.HOT, seed=seed) for seed in range(256)]
    store.defragment()
    exact_nbytes, before = store.nbytes, mx.get_active_memory()
    held: list[int] = []
    mx.reset_peak_memory()
    store.lower_all([(page, Tier.COLD) for page in pages], spec, lambda: held.append(mx.get_active_memory()))
    # Beside what is held: one layer's keys or values in the new bits, twice while they grow, and 64 blocks.
    assert mx.get_peak_memory() - before < 2 * 0.3 * exact_nbytes / 16 + 4 * copy_nbytes
    saved = (exact_nbytes - sum(page.nbytes for page in pages)) / 8
    assert np.diff([before, *held]).tolist() == pytest.approx([-saved] * 8, rel=0.1)
    assert store.nbytes <= 1.07 * used_nbytes(store) < 0.3 * exact_nbytes


def test_lowering_that_is_stopped_between_layers_can_go_on() -> None:
    spec, checks = KVSpec.parse("4, 0-.h1:k8v3; page=64"), iter([False, True])
    store, whole = (store_of(spec, *[SHAPE] * 4) for _ in range(2))
    pages, others = (
        [random_page(one, spec, Tier.HOT, seed=seed) for seed in range(9)] for one in (store, whole)
    )

    def stop() -> None:
        if next(checks):
            raise Cancelled

    with pytest.raises(Cancelled):
        store.lower_all([(page, Tier.COLD) for page in pages], spec, stop)
    for page in pages:
        assert page.tier is Tier.COLD
        assert [bits_of(page, layer) for layer in range(4)] == [["4", "k8v3"]] * 2 + [["16", "16"]] * 2
        assert np.array_equal(read(store, page, 3)[1], random_kv(SHAPE, 64, page.number + 3000)[1])
    assert sum(page.nbytes for page in pages) == used_nbytes(store)
    store.lower_all([(page, Tier.COLD) for page in pages], spec)
    whole.lower_all([(page, Tier.COLD) for page in others], spec)
    assert sum(page.nbytes for page in pages) == used_nbytes(store) == used_nbytes(whole)
    for page, other in zip(pages, others, strict=True):
        assert page.nbytes == other.nbytes
        for layer in range(4):
            assert bits_of(page, layer) == ["4", "k8v3"]
            for one, expected in zip(read(store, page, layer), read(whole, other, layer), strict=True):
                assert np.array_equal(one, expected)


def test_a_page_that_is_moved_twice_takes_the_lower_tier() -> None:
    spec = KVSpec.parse("4; page=64")
    store = store_of(spec, SHAPE)
    page = random_page(store, spec, Tier.HOT)
    store.lower_all([(page, Tier.COLD), (page, Tier.WARM)], spec)
    assert page.tier is Tier.COLD
    assert bits_of(page, 0) == ["4", "4"]
    assert page.nbytes == used_nbytes(store)


def test_a_page_s_bits_are_its_own() -> None:
    spec = KVSpec.parse("8; page=64")
    store = store_of(spec, SHAPE)
    first, second = random_page(store, spec), random_page(store, spec, seed=1)
    store.lower_all([(first, Tier.COLD)], KVSpec.parse("8, 0.h1:4; page=64"))
    store.lower_all([], spec)
    third = random_page(store, spec, seed=2)
    assert [bits_of(page, 0) for page in (first, second, third)] == [["8", "4"], ["8", "8"], ["8", "8"]]
