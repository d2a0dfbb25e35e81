from __future__ import annotations

import dataclasses

from app.cli.guard_report import event_line, report
from engine.bench.guard import GuardBench
from tests.engine.bench.test_guard import FREE, GUARDED, RESULT


def test_a_step_is_told_with_its_time_its_reason_and_what_is_taken_after_it() -> None:
    told = event_line(GUARDED.events[0], begun_s=1.0)
    for part in ("1.5 s", "lower tiers", "9 pages went", "because Octavo takes much", "550 MB taken now"):
        assert part in told
    assert "3.5 s  end of smaller chunks  Pieces" in event_line(GUARDED.events[1], 0.0)


def test_both_runs_are_told_with_their_sizes() -> None:
    told = report(RESULT)
    assert "600 MB" in told
    assert told.count("700 MB") == 2
    assert "7,500" in told
    assert "All 6 questions were answered, and every word is stored." in told


def test_a_lost_word_is_told_instead() -> None:
    lost = dataclasses.replace(GUARDED, problems=("message 3 is stored with other words",))
    told = report(GuardBench(FREE, lost))
    assert "With guard: message 3 is stored with other words." in told
    assert "every word" not in told


def test_what_was_given_up_is_told() -> None:
    trimmed = dataclasses.replace(GUARDED, num_left_out_turns=2, num_overrides=1)
    told = report(GuardBench(FREE, trimmed))
    assert "2 oldest turns" in told
    assert "ended by hand" in told
