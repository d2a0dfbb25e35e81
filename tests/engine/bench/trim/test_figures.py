from __future__ import annotations

import dataclasses
import io

import pytest

from engine.bench.trim.figures import TrimBench
from tests.engine.bench.trim.figures import MB, OTHER_TEXT, RESULT, RUN, TEXT, long_run, turn


def test_speed_is_how_much_longer_mlx_lm_took() -> None:
    assert TEXT.speedup == 15.0
    assert RESULT.speedup == 13.5  # the median of 15 and 12


def test_perplexity_is_held_against_the_same_text_read_again() -> None:
    assert TEXT.perplexity.excess == pytest.approx(0.02)
    assert RESULT.excess == pytest.approx((1.02 * 1.1) ** 0.5 - 1)


def test_memory_is_judged_by_the_last_turns_alone() -> None:
    grown = long_run([1] * 20 + [10, 20] * 20)
    assert grown.spread == 2.0
    assert grown.growth == 1.0


def test_memory_that_grows_from_trim_to_trim_shows() -> None:
    growing = long_run([10, 20] * 10 + [20, 30] * 10)
    assert growing.growth == 1.5
    bars = dataclasses.replace(RESULT, long_run=growing).bars()
    assert [bar.met for bar in bars] == [True, False, False, False]
    assert long_run([10]).growth is None


def test_a_speed_or_a_perplexity_beyond_its_limit_misses_its_bar() -> None:
    def met(result: TrimBench) -> list[bool | None]:
        return [bar.met for bar in result.bars()]

    assert met(dataclasses.replace(RESULT, texts=(TEXT,))) == [True] * 4
    slow = dataclasses.replace(TEXT, mlx_lm_s=19.0)
    assert met(dataclasses.replace(RESULT, texts=(slow,))) == [False, True, True, True]
    assert met(dataclasses.replace(RESULT, texts=(TEXT, TEXT, TEXT, OTHER_TEXT))) == [True, True, False, True]


def test_trims_are_the_turns_before_which_others_left() -> None:
    assert [one.number for one in RUN.trims] == list(range(4, 61, 3))
    unanswered = dataclasses.replace(RUN, turns=(turn(1, MB), turn(2, MB, is_answered=False)))
    assert (unanswered.num_answered, unanswered.trims) == (1, ())


def test_the_picture_is_a_png_of_its_size() -> None:
    from engine.bench.trim.picture import draw

    drawn = io.BytesIO()
    draw({"with summaries": RUN, "without": long_run([5, 6, 4])}, drawn)
    content = drawn.getvalue()
    assert content.startswith(b"\x89PNG")
    width, height = (int.from_bytes(content[start : start + 4]) for start in (16, 20))
    assert (width, height) == (1430, 715)
