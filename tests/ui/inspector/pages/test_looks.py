from __future__ import annotations

import pytest

from engine.kv.precision import Tier
from tests.ui.inspector.pages.samples import page, page_map
from ui.inspector.pages.looks import LEVELS, PageState, cell_looks, heat_levels

HALF = (LEVELS - 1) // 2


def test_equal_heat_is_half_bright() -> None:
    assert heat_levels([0.01] * 50) == [HALF] * 50


def test_steps_are_factors_of_an_even_share() -> None:
    # Mean 0.01, so these get 1/8, 1/4, 1/2, 1, 2, 4 and 8 times an even share; the rest evens it out.
    heats = [0.01 * 2**power for power in range(-3, 4)]
    rest = [(0.01 * 1000 - sum(heats)) / 993] * 993

    levels = heat_levels([*heats, *rest])[:7]

    assert levels == [0, 2, 4, 6, 8, 10, 12]


def test_one_page_that_is_read_most_does_not_make_the_others_alike() -> None:
    heats = [0.6, *[0.0005] * 150, *[0.002] * 150]

    levels = heat_levels(heats)

    assert levels[0] == LEVELS - 1
    assert levels[200] - levels[100] >= 3


@pytest.mark.parametrize("heats", [[], [0.0], [0.0] * 5])
def test_pages_that_were_never_sampled_are_equal(heats: list[float]) -> None:
    assert heat_levels(heats) == [HALF] * len(heats)


def test_looks_name_tier_disk_sharing_and_pins() -> None:
    pages = [
        page(0, Tier.HOT, references=2),
        page(1, Tier.WARM, pinned=True),
        page(2, Tier.COLD),
        page(3, Tier.COLD, is_on_disk=True),
    ]

    looks = cell_looks(page_map(*pages))

    assert [look.state for look in looks] == [PageState.HOT, PageState.WARM, PageState.COLD, PageState.DISK]
    assert [look.shared for look in looks] == [True, False, False, False]
    assert [look.pinned for look in looks] == [False, True, False, False]
