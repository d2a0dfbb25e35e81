from __future__ import annotations

import pytest

from app.store.errors import StorageFullError, StoreLockedError
from app.store.prefixes.problems import QUIET_S, Problems, Side


class Day:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def problems_of(day: Day) -> tuple[Problems, list[str]]:
    told: list[str] = []
    return Problems(told.append, pause_s=30, clock=day), told


def test_a_problem_is_told_once_however_often_it_is_met_and_on_both_sides() -> None:
    day = Day()
    problems, told = problems_of(day)
    for _ in range(400):
        problems.met(Side.WRITING, StorageFullError("The disk is full."))
        problems.met(Side.READING, StorageFullError("The disk is full."))
        day.now_s += 30
    assert told == ["The disk is full."]
    problems.met(Side.WRITING, StoreLockedError("Another program has it."))
    assert told == ["The disk is full.", "Another program has it."]


def test_a_problem_that_comes_back_after_a_long_time_is_told_again() -> None:
    day = Day()
    problems, told = problems_of(day)
    for pause_s, times in ((0.0, 1), (QUIET_S - 1, 1), (QUIET_S, 2)):
        day.now_s += pause_s
        problems.met(Side.WRITING, StorageFullError("The disk is full."))
        problems.gone(Side.WRITING)
        assert told == ["The disk is full."] * times


def test_each_side_rests_by_itself_and_only_while_something_is_wrong() -> None:
    day = Day()
    problems, _ = problems_of(day)
    problems.met(Side.WRITING, StorageFullError("The disk is full."))
    day.now_s = 12
    assert problems.pause_left_s(Side.WRITING) == pytest.approx(18)
    assert problems.pause_left_s(Side.READING) == 0
    assert problems.sentence == "The disk is full."
    day.now_s = 31
    # It has to work once before it is well again.
    assert problems.pause_left_s(Side.WRITING) == 0
    assert problems.sentence == "The disk is full."
    problems.gone(Side.WRITING)
    assert problems.sentence is None
    assert problems.pause_left_s(Side.WRITING) == 0
