from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.control_group import GroupMemory
from engine.figures import EngineFigures
from engine.guard import Guard, GuardStep
from engine.memory import MemoryReading, MemorySample, PressureLevel
from engine.memory_limits import MemoryLimits
from engine.pressure import judge
from tests.engine.memory_samples import GB, MB, reading

NORMAL, WARNING, CRITICAL = PressureLevel
LIMITS = MemoryLimits()
TWO_GB = MemoryLimits(most_nbytes=2 * GB)


def group(used_nbytes: int, limit_nbytes: int = 2 * GB) -> GroupMemory:
    return GroupMemory(limit_nbytes, used_nbytes, Path("/"))


@pytest.mark.parametrize(
    "fine",
    [
        reading(),
        reading(swap_nbytes=12 * GB),
        reading(available_nbytes=1500 * MB, swap_nbytes=8 * GB),
        reading(swap_rate=300 * MB),
        reading(stalled=0.9),
        reading(available_nbytes=2 * GB, stalled=0.05, swap_rate=2 * MB),
        reading(process_nbytes=7 * GB),
        reading(total_nbytes=512 * GB, available_nbytes=8 * GB),
        reading(total_nbytes=4 * GB, available_nbytes=300 * MB),
        reading(group=group(1500 * MB)),
        reading(available_nbytes=100 * MB, system_level=NORMAL),
    ],
    ids=[
        "half is free",
        "old swap",
        "old swap and a tenth is free",
        "swapping with half free",
        "waiting with half free, inside the limit of others",
        "a little of everything",
        "a large process without a limit",
        "8 GB free of a huge memory",
        "300 MB free of a small one",
        "a group with a quarter free",
        "macOS is content with little",
    ],
)
def test_what_is_fine_is_normal(fine: MemoryReading) -> None:
    assert judge(fine, LIMITS).level is NORMAL


@pytest.mark.parametrize(
    ("short", "limits", "expected"),
    [
        (
            reading(available_nbytes=700 * MB),
            LIMITS,
            (WARNING, "only 700 MB of the 16.0 GB of memory are free"),
        ),
        (
            reading(available_nbytes=200 * MB),
            LIMITS,
            (CRITICAL, "only 200 MB of the 16.0 GB of memory are free"),
        ),
        (
            reading(total_nbytes=512 * GB, available_nbytes=350 * MB),
            LIMITS,
            (CRITICAL, "only 350 MB of the 512.0 GB of memory are free"),
        ),
        (
            reading(available_nbytes=1200 * MB, swap_rate=40 * MB),
            LIMITS,
            (WARNING, "swap grows by 40 MB a second and 8 % of memory are free"),
        ),
        (
            reading(available_nbytes=480 * MB, swap_rate=140 * MB),
            LIMITS,
            (CRITICAL, "swap grows by 140 MB a second and 3 % of memory are free"),
        ),
        (
            reading(available_nbytes=2 * GB, stalled=0.22),
            LIMITS,
            (WARNING, "programs wait for memory 22 % of the time"),
        ),
        (
            reading(available_nbytes=GB, stalled=0.45),
            LIMITS,
            (CRITICAL, "programs wait for memory 45 % of the time"),
        ),
        (
            reading(process_nbytes=1900 * MB),
            TWO_GB,
            (WARNING, "Octavo takes 1.9 of the 2.0 GB that it may"),
        ),
        (
            reading(process_nbytes=2300 * MB),
            TWO_GB,
            (CRITICAL, "Octavo takes 2.3 of the 2.0 GB that it may"),
        ),
        (
            reading(group=group(1850 * MB)),
            LIMITS,
            (WARNING, "1.9 of the 2.0 GB that this container may take are in use"),
        ),
        (
            reading(group=group(1990 * MB)),
            LIMITS,
            (CRITICAL, "2.0 of the 2.0 GB that this container may take are in use"),
        ),
        (reading(system_level=WARNING), LIMITS, (WARNING, "macOS says that memory is short")),
        (reading(system_level=CRITICAL), LIMITS, (CRITICAL, "macOS says that memory is very short")),
    ],
)
def test_what_is_short_is_told_with_its_figures(
    short: MemoryReading, limits: MemoryLimits, expected: tuple[PressureLevel, str]
) -> None:
    judged = judge(short, limits)
    assert (judged.level, judged.reason) == expected
    assert not judged.has_spare


def test_normal_memory_is_told_with_its_figures() -> None:
    assert judge(reading(), LIMITS).reason == "8.0 of the 16.0 GB of memory are free"
    inside = judge(reading(group=group(500 * MB)), LIMITS).reason
    assert inside == "1.5 of the 2.0 GB that this container may take are free"


def test_of_two_reasons_the_worse_is_told() -> None:
    both = reading(available_nbytes=200 * MB, process_nbytes=1900 * MB)
    assert judge(both, TWO_GB) == judge(both, LIMITS)


def test_between_short_and_roomy_memory_is_normal_without_some_to_spare() -> None:
    judged = [judge(reading(available_nbytes=free * MB), LIMITS) for free in (700, 900, 1100)]
    assert [one.level for one in judged] == [WARNING, NORMAL, NORMAL]
    assert [one.has_spare for one in judged] == [False, False, True]


@pytest.mark.parametrize("seed", range(5))
def test_figures_that_waver_around_a_threshold_do_not_move_the_guard_up_and_down(seed: int) -> None:
    """Ten minutes around the 800 MB at which a warning begins."""
    noise, guard, heights = random.Random(seed), Guard(), []
    for second in range(600):
        taken = reading(time_s=float(second), available_nbytes=int(noise.gauss(820, 60)) * MB)
        judged = judge(taken, LIMITS)
        guard.take(MemorySample.of(taken, EngineFigures(), judged.level, judged.reason, judged.has_spare))
        heights.append(guard.height)
    assert heights[-1] > GuardStep.NONE
    assert heights == sorted(heights)


def test_another_program_that_takes_much_and_leaves_enough_is_no_pressure() -> None:
    free_gb = [12, 12, 9, 5, 2, 1.5, 1.2, *[1.2] * 600]
    judged = [judge(reading(available_nbytes=int(free * GB), swap_nbytes=2 * GB), LIMITS) for free in free_gb]
    assert {one.level for one in judged} == {NORMAL}


@given(
    st.integers(0, 16 * GB),
    st.floats(0, 1),
    st.floats(0, 1e9),
    st.integers(0, 4 * GB),
)
def test_more_free_memory_is_never_judged_worse(
    available: int, stalled: float, swap_rate: float, own: int
) -> None:
    def level(free_nbytes: int) -> PressureLevel:
        taken = reading(
            available_nbytes=free_nbytes, stalled=stalled, swap_rate=swap_rate, process_nbytes=own
        )
        return judge(taken, TWO_GB).level

    assert level(min(16 * GB, available + GB)) <= level(available)
