"""The least and largest keys of pages: what they are, when they are found, and what they take."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.groups import PageGroup, group_pages
from engine.kv.page import Page
from engine.kv.page_table import PageReference
from engine.kv.pool import Part, SlotPool
from engine.kv.precision import KVSpec, LayerShape, Tier
from engine.kv.store import PageStore
from tests.engine.kv.random_pages import random_page, store_of

SHAPE = LayerShape(2, 64, 64)
SPEC = KVSpec.parse("4, 0.h1:8; page=64, hot=1, attend=1")
UNLIMITED = KVSpec.parse("4, 0.h1:8; page=64, hot=1")


def groups_of(store: PageStore, pages: list[Page]) -> list[PageGroup]:
    marks = np.ones(store.page_tokens, dtype=np.bool_)
    return group_pages(store, 0, [PageReference(page, marks) for page in pages], 0)


def check_bounds(store: PageStore, pages: list[Page]) -> None:
    """Check the bounds of all blocks against the keys that are held."""
    held = {page: np.array(store.read(page, 0)[0]) for page in pages}
    for group in groups_of(store, pages):
        assert group.bounds is not None
        least, largest = map(np.array, group.bounds)
        for row, head in enumerate(group.heads):
            for column, page in enumerate(group.pages):
                keys = held[pages[page]][head]
                assert np.array_equal(least[row, :, column], keys.min(axis=-1))
                assert np.array_equal(largest[row, :, column], keys.max(axis=-1))


@settings(max_examples=40)
@given(data=st.data())
def test_bounds_are_those_of_the_keys_that_are_held_whatever_moves(data: st.DataObject) -> None:
    store, pages = store_of(SPEC, SHAPE), list[Page]()
    for step in range(data.draw(st.integers(1, 12))):
        spec = data.draw(st.sampled_from([SPEC, UNLIMITED]))
        action = data.draw(st.sampled_from(["seal", "seal", "lower", "free", "close", "check"]))
        if action == "seal" or not pages:
            tier = data.draw(st.sampled_from(list(Tier)))
            pages += [random_page(store, spec, tier, seed=10 * step + n) for n in range(3)]
        elif action == "lower":
            store.lower_all([(page, Tier.COLD) for page in pages[::2]], spec)
        elif action == "free":
            for page in pages[::3]:
                store.release(page)
            del pages[::3]
        elif action == "close":
            store.defragment()
        elif pages:
            check_bounds(store, pages)
    if pages:
        check_bounds(store, pages)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the blocks that are unpacked."""
    found: list[int] = []
    get = SlotPool.get

    def counting(pool: SlotPool, slots: mx.array) -> mx.array:
        found.append(slots.size)
        return get(pool, slots)

    monkeypatch.setattr(SlotPool, "get", counting)
    return found


def test_no_keys_are_unpacked_for_the_bounds_of_pages_that_have_them(reads: list[int]) -> None:
    store = store_of(SPEC, SHAPE)
    pages = [random_page(store, SPEC, Tier.HOT, seed=seed) for seed in range(5)]
    store.lower_all([(page, Tier.COLD) for page in pages[:3]], SPEC)
    reads.clear()
    for group in groups_of(store, pages):
        assert group.bounds is not None
    assert reads == []
    pages.append(random_page(store, SPEC, Tier.HOT, seed=5))
    assert sum(reads) == 2  # its own keys, of two heads


def test_bounds_are_found_when_they_are_first_asked_for(reads: list[int]) -> None:
    store = store_of(UNLIMITED, SHAPE)
    pages = [random_page(store, UNLIMITED, seed=seed) for seed in range(6)]
    groups = groups_of(store, pages)
    pools = [store.pool(0, Part.KEYS, bits) for bits in (4, 8)]
    nbytes = store.nbytes
    assert nbytes == sum(page.nbytes for page in pages)
    assert reads == []  # as in prefill
    assert [group.taken_bounds for group in groups] == [(), ()]
    check_bounds(store, pages)
    # Least and largest of 64 channels in float32, for each head of six pages.
    assert store.nbytes - nbytes == 2 * 64 * 4 * 2 * 6
    assert [pool.nbytes - 6 * pool.block_nbytes for pool in pools] == [2 * 64 * 4 * 6] * 2
    store.lower_all([(page, Tier.COLD) for page in pages], UNLIMITED)
    assert store.nbytes == nbytes
    store.lower_all([(page, Tier.COLD) for page in pages], SPEC)
    assert store.nbytes - nbytes == 2 * 64 * 4 * 2 * 6
    assert sum(page.nbytes for page in pages) == nbytes


def test_taken_bounds_are_the_group_s_own_copy() -> None:
    store = store_of(SPEC, SHAPE)
    pages = [random_page(store, SPEC, seed=seed) for seed in range(5)]
    group, _ = groups_of(store, pages)
    assert group.bounds is group.bounds
    assert group.bounds is not None
    assert sum(array.nbytes for array in group.taken_bounds) == 2 * 64 * 4 * 5
    marks = np.ones(64, dtype=np.bool_)
    enough = group_pages(store, 0, [PageReference(page, marks) for page in pages], 5)
    assert [one.bounds for one in enough] == [None, None]
