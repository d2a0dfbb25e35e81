from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.guard import CALM_S, MAX_CAUTION, Guard, GuardStep
from engine.memory import MemorySample, PressureLevel
from tests.engine.memory_samples import LETTERS, sample, samples

STEPS_UP_TO_TRIM = list(GuardStep)[:-1]

levels = st.lists(st.sampled_from("ntwc"), max_size=120)


def heights(guard: Guard, taken: Iterable[MemorySample]) -> list[GuardStep]:
    """Return the guard's height after each sample, and check what `take` says of it."""
    seen = []
    for one in taken:
        before = guard.height
        assert guard.take(one) is (guard.height is not before)
        seen.append(guard.height)
    return seen


def changes(seen: Iterable[GuardStep]) -> list[GuardStep]:
    """Return the heights without repetitions."""
    kept: list[GuardStep] = []
    for height in seen:
        if not kept or height is not kept[-1]:
            kept.append(height)
    return kept


def at_pause() -> tuple[Guard, float]:
    """Return a guard that asks for a pause, and when it did."""
    guard, time_s = Guard(), 0.0
    while guard.height is not GuardStep.PAUSE:
        time_s += 0.5
        guard.take(sample(PressureLevel.CRITICAL, time_s))
        assert time_s < 60
    return guard, time_s


def test_normal_memory_asks_for_nothing() -> None:
    assert set(heights(Guard(), samples("n" * 600))) == {GuardStep.NONE}


@pytest.mark.parametrize("spike", ["w", "c"])
def test_one_sample_above_normal_is_a_spike(spike: str) -> None:
    assert set(heights(Guard(), samples(f"nnn{spike}nnn{spike}nnnn" * 20))) == {GuardStep.NONE}


def test_two_samples_in_a_row_clear_the_cache() -> None:
    assert heights(Guard(), samples("nww"))[-1] is GuardStep.CLEAR_CACHE


def test_a_lasting_warning_climbs_step_by_step_and_never_pauses() -> None:
    assert changes(heights(Guard(), samples("n" + "w" * 600))) == STEPS_UP_TO_TRIM


def test_lasting_critical_memory_climbs_step_by_step_to_the_pause() -> None:
    assert changes(heights(Guard(), samples("n" + "c" * 600))) == list(GuardStep)


@pytest.mark.parametrize("letter", ["w", "c"])
def test_each_step_has_time_to_work_before_the_next(letter: str) -> None:
    seen = heights(Guard(), samples(letter * 400, every_s=0.1))
    moved_at = [index / 10 for index in range(1, len(seen)) if seen[index] is not seen[index - 1]]
    waits = [later - earlier for earlier, later in pairwise(moved_at)]
    shortest, before_trim = {"w": (4, 10), "c": (0.4, 0.9)}[letter]
    assert waits[:3] == pytest.approx([shortest] * 3, abs=0.15)
    assert waits[3:] == pytest.approx([before_trim] * len(waits[3:]), abs=0.15)


def test_critical_memory_climbs_faster_than_a_warning() -> None:
    def time_to_trim(letter: str) -> int:
        return heights(Guard(), samples(letter * 100)).index(GuardStep.TRIM)

    assert time_to_trim("c") * 2 < time_to_trim("w")


def test_a_step_that_helps_is_the_last() -> None:
    seen = heights(Guard(), samples("www" + "n" * 9))
    assert changes(seen) == [GuardStep.NONE, GuardStep.CLEAR_CACHE]


def test_calm_takes_back_one_step_after_the_other() -> None:
    guard = Guard()
    climbed = heights(guard, samples("w" * 7))[-1]
    assert climbed is GuardStep.LOWER_TIERS
    later = [sample(PressureLevel.NORMAL, time_s) for time_s in range(7, 40)]
    seen = heights(guard, later)
    assert changes(seen) == [GuardStep.LOWER_TIERS, GuardStep.CLEAR_CACHE, GuardStep.NONE]
    assert seen.index(GuardStep.CLEAR_CACHE) + 1 == pytest.approx(CALM_S, abs=1)


def test_a_warning_in_between_begins_the_calm_again() -> None:
    guard = Guard()
    heights(guard, samples("www"))
    seen = heights(guard, samples("nnn" + "nnnnnnnnw" * 20)[3:])
    assert set(seen) == {GuardStep.CLEAR_CACHE}


def test_normal_memory_without_some_to_spare_neither_climbs_nor_comes_down() -> None:
    guard = Guard()
    assert set(heights(guard, samples("t" * 100))) == {GuardStep.NONE}
    heights(guard, [sample(PressureLevel.WARNING, time_s) for time_s in range(100, 103)])
    tight = [sample(PressureLevel.NORMAL, time_s, has_spare=False) for time_s in range(103, 300)]
    assert set(heights(guard, tight)) == {GuardStep.CLEAR_CACHE}


def test_a_pause_ends_once_memory_is_no_longer_critical() -> None:
    guard, time_s = at_pause()
    seen = heights(guard, [sample(PressureLevel.WARNING, time_s + n) for n in range(1, 6)])
    assert seen == [GuardStep.PAUSE] * 2 + [GuardStep.TRIM] * 3


def test_a_pause_that_had_to_be_repeated_ends_later() -> None:
    guard, time_s = at_pause()
    heights(guard, [sample(PressureLevel.WARNING, time_s + n) for n in range(1, 4)])
    assert guard.height is GuardStep.TRIM
    heights(guard, [sample(PressureLevel.CRITICAL, time_s + n) for n in range(4, 10)])
    assert guard.height is GuardStep.PAUSE
    seen = heights(guard, [sample(PressureLevel.WARNING, time_s + n) for n in range(10, 18)])
    assert seen == [GuardStep.PAUSE] * 5 + [GuardStep.TRIM] * 3


def test_the_user_ends_a_pause_until_memory_has_been_normal_once() -> None:
    guard, time_s = at_pause()
    guard.go_on()
    assert guard.height is GuardStep.TRIM
    critical = [sample(PressureLevel.CRITICAL, time_s + n) for n in range(1, 200)]
    assert guard.take(critical[0])
    assert set(heights(guard, critical[1:])) == {GuardStep.TRIM}
    guard.take(sample(PressureLevel.NORMAL, time_s + 200))
    later = [sample(PressureLevel.CRITICAL, time_s + 201 + n) for n in range(20)]
    assert heights(guard, later)[-1] is GuardStep.PAUSE


def test_going_on_without_a_pause_changes_nothing() -> None:
    guard = Guard()
    heights(guard, samples("wwwww"))
    guard.go_on()
    assert guard.height is GuardStep.CLEAR_CACHE


def test_memory_that_another_program_holds_does_not_pause_for_ever() -> None:
    """Critical for two minutes whatever is done, then that program is content with less."""
    letters = "c" * 240 + "w" * 60 + "n" * 300
    seen = heights(Guard(), samples(letters, every_s=0.5))
    assert GuardStep.PAUSE in seen[:240]
    assert set(seen[244:300]) == {GuardStep.TRIM}
    assert seen[-1] is GuardStep.NONE


def test_why_it_climbed_and_why_it_came_down_are_the_words_of_these_samples() -> None:
    guard = Guard()
    assert (guard.reason, guard.ease) == ("", "")
    heights(guard, samples("nwwn"))
    assert guard.reason == "it is WARNING"
    heights(guard, [sample(PressureLevel.NORMAL, time_s) for time_s in range(4, 20)])
    assert guard.height is GuardStep.NONE
    assert (guard.reason, guard.ease) == ("it is WARNING", "it is NORMAL")


@pytest.mark.parametrize("seed", range(5))
def test_levels_that_come_and_go_do_not_drive_it_up_and_down(seed: int) -> None:
    """A quarter of all samples are above normal, at random, for half an hour."""
    noise = random.Random(seed)
    seen = heights(Guard(), samples(noise.choices("nw", (3, 1), k=1800)))
    turns = sum(later < earlier for earlier, later in pairwise(seen))
    assert turns <= 6


def test_pressure_that_returns_each_time_is_waited_for_longer() -> None:
    """Memory is short whenever nothing is done about it, as when a reply refills what was given back."""
    guard, seen = Guard(), []
    for second in range(1800):
        short = guard.height is GuardStep.NONE
        guard.take(sample(PressureLevel.WARNING if short else PressureLevel.NORMAL, second))
        seen.append(guard.height)
    went_down = [n for n in range(1, 1800) if seen[n] < seen[n - 1]]
    waits = [later - earlier for earlier, later in pairwise(went_down)]
    assert waits == sorted(waits)
    assert waits[-1] >= CALM_S * MAX_CAUTION


def test_long_calm_makes_it_forget_its_caution() -> None:
    guard = Guard()
    heights(guard, samples("ww" + "n" * 12 + "ww" + "n" * 24))
    assert guard.height is GuardStep.NONE
    calm_s = 40 + CALM_S * MAX_CAUTION
    later = samples("n" * int(calm_s + 1) + "ww" + "n" * 11)[40:]
    assert changes(heights(guard, later)) == [GuardStep.NONE, GuardStep.CLEAR_CACHE, GuardStep.NONE]


@given(levels, st.floats(0.1, 5))
def test_the_height_changes_by_one_step_at_a_time(letters: list[str], every_s: float) -> None:
    seen = [GuardStep.NONE, *heights(Guard(), samples(letters, every_s))]
    assert all(abs(later - earlier) <= 1 for earlier, later in pairwise(seen))


@given(levels, st.floats(0.25, 2))
def test_it_climbs_only_above_normal_and_pauses_only_when_critical(
    letters: list[str], every_s: float
) -> None:
    seen = [GuardStep.NONE, *heights(Guard(), samples(letters, every_s))]
    for letter, (earlier, later) in zip(letters, pairwise(seen), strict=True):
        if later > earlier:
            assert LETTERS[letter] > PressureLevel.NORMAL
        if later is GuardStep.PAUSE and earlier is not GuardStep.PAUSE:
            assert LETTERS[letter] is PressureLevel.CRITICAL


@given(levels, st.booleans())
def test_from_whatever_height_calm_leads_back_to_nothing(letters: list[str], goes_on: bool) -> None:
    guard = Guard()
    heights(guard, samples(letters, every_s=0.5))
    if goes_on:
        guard.go_on()
    calm_s = int((CALM_S * MAX_CAUTION + 1) * len(GuardStep))
    for second in range(0, calm_s, 9):
        guard.take(sample(PressureLevel.NORMAL, 60 + second))
    assert guard.height is GuardStep.NONE
