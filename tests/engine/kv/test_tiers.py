from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.kv.precision import Tier
from engine.kv.tiers import PageState, TierPolicy

RANK = {Tier.COLD: 0, Tier.WARM: 1, Tier.HOT: 2}
LETTERS = {"h": Tier.HOT, "w": Tier.WARM, "c": Tier.COLD}

heats = st.one_of(st.just(0.0), st.sampled_from([0.25, 0.5]), st.floats(0, 1))
page_states = st.builds(PageState, st.sampled_from(Tier), heats, st.booleans())
sequences = st.lists(page_states, max_size=16)
policies = st.builds(TierPolicy, st.integers(0, 6), st.integers(0, 8))


def pages(
    tiers: str, heats: dict[int, float] | None = None, protected: set[int] | None = None
) -> list[PageState]:
    """Return pages from letters, oldest first, with heats and protection by index."""
    return [
        PageState(LETTERS[letter], (heats or {}).get(index, 0.0), index in (protected or set()))
        for index, letter in enumerate(tiers)
    ]


def wanted(policy: TierPolicy, states: list[PageState]) -> str:
    return "".join(tier.value[0] for tier in policy.wanted(states))


@pytest.mark.parametrize(
    ("hot", "warm", "expected"),
    [
        (0, 0, "cccccccc"),
        (1, 0, "ccccccch"),
        (2, 4, "ccwwwwhh"),
        (1, 4, "cccwwwwh"),
        (1, 1, "ccccccwh"),
        (1, 3, "ccccwwwh"),
        (3, 0, "ccccchhh"),
        (0, 2, "ccccccww"),
        (9, 9, "hhhhhhhh"),
    ],
)
def test_pages_without_heat_go_down_by_age(hot: int, warm: int, expected: str) -> None:
    assert wanted(TierPolicy(hot, warm), pages("hhhhhhhh")) == expected


def test_nothing_is_wanted_of_no_pages() -> None:
    assert TierPolicy(1, 4).wanted([]) == []


def test_half_of_the_warm_places_go_to_the_hottest_of_the_old_pages() -> None:
    policy = TierPolicy(hot_pages=1, warm_pages=4)
    assert wanted(policy, pages("wwwwwwwh", {0: 0.2, 1: 0.1, 2: 0.3})) == "wcwccwwh"
    assert wanted(policy, pages("wwwwwwwh", {1: 0.1})) == "cwccwwwh"
    assert wanted(policy, pages("wwwwwwwh", {0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1, 4: 0.1})) == "cccwwwwh"


def test_an_odd_number_of_warm_places_leaves_the_larger_half_to_age() -> None:
    assert wanted(TierPolicy(1, 5), pages("wwwwwwwwh", {0: 1.0, 1: 1.0, 2: 1.0})) == "cwwccwwwh"
    assert wanted(TierPolicy(1, 1), pages("wwwwwwwwh", {0: 1.0})) == "cccccccwh"


def test_a_page_that_is_cold_already_takes_no_place_by_its_heat() -> None:
    assert wanted(TierPolicy(1, 4), pages("cwwwwwwh", {0: 1.0, 1: 0.5})) == "cwccwwwh"


def test_a_page_never_goes_up_even_when_its_age_would_allow_it() -> None:
    assert wanted(TierPolicy(2, 4), pages("cwhcwcwc")) == "cwwcwcwc"


def test_a_protected_page_is_a_tier_above_its_age_and_takes_no_place() -> None:
    policy = TierPolicy(hot_pages=1, warm_pages=2)
    assert wanted(policy, pages("hhhhhh", protected={0})) == "wccwwh"
    assert wanted(policy, pages("hhhhhh", protected={0, 4})) == "wcwwhh"
    assert wanted(policy, pages("hhhhhh", protected={0, 5})) == "wcwwhh"
    assert wanted(policy, pages("hhhhhh", protected={0, 1, 2, 3, 4, 5})) == "hhhhhh"


def test_the_first_page_stays_warm_when_nothing_else_does() -> None:
    assert wanted(TierPolicy(0, 0), pages("hhhh", protected={0})) == "wccc"


def test_a_protected_page_does_not_go_above_its_present_tier() -> None:
    assert wanted(TierPolicy(1, 2), pages("chhwhc", protected={0, 3, 5})) == "cwwwhc"


@given(policies, sequences)
def test_no_page_ever_goes_up(policy: TierPolicy, states: list[PageState]) -> None:
    tiers = policy.wanted(states)
    assert len(tiers) == len(states)
    assert all(RANK[tier] <= RANK[page.tier] for tier, page in zip(tiers, states, strict=True))


@given(policies, sequences)
def test_pages_that_are_not_protected_never_exceed_the_places(
    policy: TierPolicy, states: list[PageState]
) -> None:
    tiers = Counter(
        tier for tier, page in zip(policy.wanted(states), states, strict=True) if not page.protected
    )
    assert tiers[Tier.HOT] <= policy.hot_pages
    assert tiers[Tier.HOT] + tiers[Tier.WARM] <= policy.hot_pages + policy.warm_pages


@given(policies, st.lists(st.builds(PageState, st.just(Tier.HOT), heats, st.just(False)), max_size=16))
def test_pages_that_were_never_lowered_fill_every_place(policy: TierPolicy, states: list[PageState]) -> None:
    tiers = Counter(policy.wanted(states))
    assert tiers[Tier.HOT] == min(len(states), policy.hot_pages)
    assert tiers[Tier.WARM] == min(len(states) - tiers[Tier.HOT], policy.warm_pages)


@given(policies, sequences)
def test_asking_again_changes_nothing(policy: TierPolicy, states: list[PageState]) -> None:
    tiers = policy.wanted(states)
    moved = [dataclasses.replace(page, tier=tier) for page, tier in zip(states, tiers, strict=True)]
    assert policy.wanted(moved) == tiers


@given(policies, sequences, st.data())
def test_protecting_a_page_never_lowers_any(
    policy: TierPolicy, states: list[PageState], data: st.DataObject
) -> None:
    assume(states)
    index = data.draw(st.integers(0, len(states) - 1))
    states[index] = dataclasses.replace(states[index], protected=False)
    plain = policy.wanted(states)
    states[index] = dataclasses.replace(states[index], protected=True)
    protected = policy.wanted(states)
    assert all(RANK[after] >= RANK[before] for after, before in zip(protected, plain, strict=True))


@given(policies, sequences)
def test_a_protected_page_is_warm_at_least_unless_it_was_cold(
    policy: TierPolicy, states: list[PageState]
) -> None:
    for tier, page in zip(policy.wanted(states), states, strict=True):
        if page.protected:
            assert tier is page.tier or tier is not Tier.COLD


@given(policies, sequences)
def test_a_hotter_page_is_not_lowered_before_a_colder_one_of_its_age(
    policy: TierPolicy, states: list[PageState]
) -> None:
    tiers = policy.wanted(states)
    by_age = policy.hot_pages + policy.warm_pages - policy.warm_pages // 2
    takes_place = [index for index, page in enumerate(states) if not page.protected]
    old = takes_place[: max(0, len(takes_place) - by_age)]
    lowered = [index for index in old if states[index].tier is not Tier.COLD and tiers[index] is Tier.COLD]
    kept = [index for index in old if tiers[index] is not Tier.COLD]
    for index in kept:
        assert all((states[other].heat, other) < (states[index].heat, index) for other in lowered)


@given(policies, sequences, page_states)
def test_a_new_page_raises_none(policy: TierPolicy, states: list[PageState], new: PageState) -> None:
    before = policy.wanted(states)
    moved = [dataclasses.replace(page, tier=tier) for page, tier in zip(states, before, strict=True)]
    after = policy.wanted([*moved, new])
    assert all(RANK[later] <= RANK[tier] for later, tier in zip(after, before, strict=False))
