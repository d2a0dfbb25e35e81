from __future__ import annotations

import dataclasses
import json

import pytest

from engine.bench.prefix.figures import (
    DecodeWhileWriting,
    PrefixBench,
    Start,
    decode_from,
    kept_from,
    loaded_from,
    median_of,
)
from tests.engine.bench.prefix.figures import AHEAD, COLD, DECODE, KEPT, LOADED, NEXT, RESULT


def met(result: PrefixBench) -> list[bool | None]:
    return [bar.met for bar in result.bars()]


def test_a_restart_is_held_against_reading_by_the_median() -> None:
    assert median_of(NEXT).ttft_s == 0.6
    assert median_of(NEXT[:2]).ttft_s == 0.9
    assert RESULT.speedup(Start.CONVERSATION) == pytest.approx(125)  # 75 s against 0.6 s
    assert RESULT.speedup(Start.DOCUMENT) == pytest.approx(30)
    assert RESULT.speedup(Start.LOADED) == pytest.approx(250)


def test_all_answers_are_told_in_the_order_of_what_was_found() -> None:
    assert list(RESULT.first_tokens()) == list(Start)
    assert RESULT.first_tokens()[Start.NOTHING] == (COLD,)
    assert RESULT.first_tokens()[Start.NOTHING_YET] == (KEPT.first,)


def test_speeds_and_sizes_are_ratios() -> None:
    assert RESULT.restore_mbps == pytest.approx(250)  # 101 MB in 0.404 s
    assert RESULT.decode.ratio == pytest.approx(7.8 / 8.0)
    assert RESULT.decode.written_mbps == 200
    assert KEPT.disk_ratio == pytest.approx(1.04)


def test_each_bar_is_missed_by_its_own_figure() -> None:
    assert met(RESULT) == [True] * 5
    late_question = dataclasses.replace(AHEAD, ttft_s=1.51)
    assert met(dataclasses.replace(RESULT, ahead=late_question)) == [False, True, True, True, True]
    slow = tuple(dataclasses.replace(one, ttft_s=0.76) for one in NEXT)
    assert met(dataclasses.replace(RESULT, restarts={**RESULT.restarts, Start.CONVERSATION: slow})) == [
        True,
        False,
        True,
        True,
        True,
    ]
    late = tuple(dataclasses.replace(one, seconds=0.51) for one in LOADED)
    assert met(dataclasses.replace(RESULT, loaded=late)) == [True, True, False, True, True]
    large = dataclasses.replace(KEPT, disk_nbytes=105_100_000)
    assert met(dataclasses.replace(RESULT, kept=large)) == [True, True, True, False, True]
    costly = DecodeWhileWriting((8.0,), (7.5,), 1, 1.0)
    assert met(dataclasses.replace(RESULT, decode=costly)) == [True, True, True, True, False]


def test_figures_come_back_from_the_json_of_another_process() -> None:
    for figures, read in ((KEPT, kept_from), (LOADED[0], loaded_from), (DECODE, decode_from)):
        assert read(json.loads(json.dumps(dataclasses.asdict(figures)))) == figures
