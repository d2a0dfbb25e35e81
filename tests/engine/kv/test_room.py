"""The bytes that are planned with, next to the bytes that caches really take."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kv.precision import KVSpec, Tier, key_nbytes, value_nbytes
from engine.kv.room import kv_nbytes, pages_by_tier, unfilled_nbytes
from engine.kv.tiers import PageState, TierPolicy
from tests.engine.kv.caches import LAYER_SHAPES, cache_of

PAGE = 64
TOKENS = 64 * 60
GROWTH = 1 / 16


def spare_nbytes(spec: KVSpec, usage_pages: dict[Tier, int]) -> float:
    """Return the bytes of an exact page, and of what a growth step leaves over in the pools of each tier."""
    nbytes = 0.0
    for layer, shape in enumerate(LAYER_SHAPES):
        nbytes += PAGE * shape.num_kv_heads * (shape.key_dim + shape.value_dim) * 4
        for tier, pages in usage_pages.items():
            pairs = [spec.tier_bits(tier, layer, head) for head in range(shape.num_kv_heads)]
            widest_key = max(key_nbytes(shape.key_dim, pair.keys, spec.group_size, 4) for pair in pairs)
            widest_value = max(
                value_nbytes(shape.value_dim, pair.values, spec.group_size, 4) for pair in pairs
            )
            spare_pages = max(0.0, pages * GROWTH - 1) + (tier is Tier.HOT)
            nbytes += spare_pages * PAGE * shape.num_kv_heads * (widest_key + widest_value)
    return nbytes


@pytest.mark.parametrize("hot", [0, 1, 50])
@pytest.mark.parametrize("warm", [0, 4])
@pytest.mark.parametrize("rules", ["16", "8", "4", "k4v3, 1.h1:8", "2; attend=3"])
def test_a_text_that_is_really_read_takes_what_was_planned(rules: str, hot: int, warm: int) -> None:
    joint = ", " if ";" in rules else "; "
    spec = KVSpec.parse(f"{rules}{joint}page={PAGE}, hot={hot}, warm={warm}")
    cache = cache_of(str(spec))
    most = 0
    for start in range(0, TOKENS, 48):
        cache.read(range(start % 4000, start % 4000 + 48))
        cache.read([7])
        most = max(most, cache.nbytes)
        planned = kv_nbytes(spec, cache.num_tokens, LAYER_SHAPES, 4)
        assert cache.nbytes <= planned
        usage = cache.usage()
        pages = {Tier.HOT: usage.hot_pages, Tier.WARM: usage.warm_pages, Tier.COLD: usage.cold_pages}
        assert planned <= most + spare_nbytes(spec, pages)


@pytest.mark.parametrize("rules", ["16", "8", "4; attend=3", "k4v3, 1.h1:8; hot=0, warm=0"])
def test_what_the_open_page_lacks_is_not_there(rules: str) -> None:
    joint = ", " if ";" in rules else "; "
    spec = KVSpec.parse(f"{rules}{joint}page={PAGE}")
    cache = cache_of(str(spec))
    unfilled = set()
    for start in range(0, TOKENS, 48):
        cache.read(range(start % 4000, start % 4000 + 47))
        cache.read([7])
        lacking = unfilled_nbytes(spec, cache.num_tokens, LAYER_SHAPES, 4)
        assert cache.nbytes <= kv_nbytes(spec, cache.num_tokens, LAYER_SHAPES, 4) - lacking
        unfilled.add(lacking)
    numbers = sum(shape.num_kv_heads * (shape.key_dim + shape.value_dim) for shape in LAYER_SHAPES)
    assert unfilled == {0, PAGE // 2 * numbers * 4}  # the open page grows by 32 tokens


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 40))
def test_pages_are_planned_in_the_tiers_that_the_policy_gives_them(hot: int, warm: int, pages: int) -> None:
    spec = KVSpec.parse(f"4; hot={hot}, warm={warm}")
    policy = TierPolicy(hot, warm)
    held: list[Tier] = []
    for _ in range(pages):
        held.append(Tier.HOT if hot else Tier.WARM if warm else Tier.COLD)
        states = [PageState(tier, 0, index == 0 and hot + warm > 0) for index, tier in enumerate(held)]
        held = policy.wanted(states)
    planned = pages_by_tier(spec, pages)
    assert {tier: held.count(tier) for tier in Tier} == {tier: planned.get(tier, 0) for tier in Tier}


@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["2", "4", "k8v3", "1:16, 0:3; attend=2"]))
def test_a_longer_text_never_takes_less(hot: int, warm: int, rules: str) -> None:
    spec = dataclasses.replace(KVSpec.parse(rules), hot_pages=hot, warm_pages=warm)
    planned = [kv_nbytes(spec, 64 * quarters, LAYER_SHAPES, 4) for quarters in range(160)]
    assert planned == sorted(planned)
    # A page that is begun counts as a whole one.
    assert planned[-1] == kv_nbytes(spec, 39 * spec.page_tokens + 1, LAYER_SHAPES, 4)


def test_many_hot_pages_are_planned_at_16_bits() -> None:
    # 100 pages of 256 tokens and the open one, at 2 layers x 2 heads x 128 numbers x 4 bytes. A growth step
    # is 6 pages then, one of which is the page that it is taken for.
    assert kv_nbytes(KVSpec.parse("2; hot=9999"), 25_601, LAYER_SHAPES, 4) == (1 + 100 + 5) * 256 * 2_048
