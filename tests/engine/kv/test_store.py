"""Pages in a store: their bits, their bytes, and who they belong to."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.pool import Part, SlotPool
from engine.kv.precision import KV_BITS, BitsPair, KVSpec, LayerShape, Tier
from tests.engine.kv.oracle import key_steps, value_errors, value_steps
from tests.engine.kv.random_pages import (
    bits_of,
    bounds_nbytes,
    random_kv,
    random_page,
    read,
    store_of,
    used_nbytes,
)

SHAPE = LayerShape(2, 64, 64)
TIERS = list(Tier)


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


@settings(max_examples=40)
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


def test_what_a_tier_means_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    tier_bits = KVSpec.tier_bits

    def counting(spec: KVSpec, tier: Tier, layer: int, head: int) -> BitsPair:
        asked.append(layer)
        return tier_bits(spec, tier, layer, head)

    monkeypatch.setattr(KVSpec, "tier_bits", counting)
    spec, other = KVSpec.parse("4; page=64"), KVSpec.parse("3; page=64")
    store = store_of(spec, SHAPE, SHAPE)
    for number in range(4):
        store.lower_all([(random_page(store, spec, Tier.HOT), Tier.COLD)], spec)
        assert len(asked) == 3 * 2 * 2  # tiers, layers, heads
        assert len(store.pages) == number + 1
    store.lower_all([(page, Tier.COLD) for page in store.pages], other)
    assert len(asked) == 2 * 3 * 2 * 2
    assert {bits for page in store.pages for bits in bits_of(page, 0)} == {"3"}


def test_heads_of_equal_bits_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = LayerShape(6, 64, 64)
    spec = KVSpec.parse("4, 0.h1:8, 0.h4:8; page=64")
    store = store_of(spec, shape)
    page = random_page(store, spec)
    reads: list[tuple[int, int]] = []
    get = SlotPool.get

    def counting(pool: SlotPool, slots: mx.array) -> mx.array:
        reads.append((pool.bits, slots.size))
        return get(pool, slots)

    monkeypatch.setattr(SlotPool, "get", counting)
    keys, values = read(store, page, 0)
    assert reads == [(4, 4), (8, 2)] * 2
    true_keys, true_values = random_kv(shape, 64, 0)
    for head in range(6):
        bits = int(page.keys[0].bits[head])
        errors = np.abs(keys[head] - true_keys[head]).T
        assert (errors <= key_steps(true_keys[head].T, bits, 64) + 1e-5).all()
        steps = value_steps(true_values[head], bits, 64)
        assert (value_errors(values[head], true_values[head]) <= steps + 1e-5).all()


def test_pages_keep_their_content_when_closing_gaps_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = KVSpec.parse("4; page=64, attend=1")
    store = store_of(spec, SHAPE)
    pages = [random_page(store, spec, seed=seed) for seed in range(12)]
    content = {page: read(store, page, 0) for page in pages[6:]}
    for page in pages[:6]:
        store.release(page)

    def fail(*arrays: object) -> None:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as context:
        context.setattr(mx, "eval", fail)  # as a device does that has no room for the copy
        with pytest.raises(RuntimeError):
            store.defragment()
    for closes in (False, True):
        if closes:
            store.defragment()
            assert store.nbytes == used_nbytes(store) + bounds_nbytes(store)
        for page, (keys, values) in content.items():
            assert np.array_equal(read(store, page, 0)[0], keys)
            assert np.array_equal(read(store, page, 0)[1], values)
    new = random_page(store, spec, seed=20)
    assert all(np.array_equal(read(store, page, 0)[0], keys) for page, (keys, _) in content.items())
    assert not np.array_equal(read(store, new, 0)[0], content[pages[6]][0])
