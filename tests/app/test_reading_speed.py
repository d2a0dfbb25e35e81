"""How fast a model reads and writes, from what was measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reading_speed import ReadingSpeed, TokenTime
from engine.model_info import ModelFormat, ModelInfo

INFO = ModelInfo(
    path=Path("x"),
    format=ModelFormat.GGUF,
    name="Small",
    architecture="llama",
    quantization="Q4_1",
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    context_tokens=8192,
    vocab_size=49152,
    num_parameters=134_500_000,
    weights_nbytes=1,
    packed_nbytes=1,
    num_plain_values=1,
)
FIRST_S, EACH_S = 0.006, 0.000_002


def taken(start: int, stop: int) -> float:
    """Return what tokens take that get slower with each position, one by one."""
    return sum(FIRST_S + EACH_S * (position + 0.5) for position in range(start, stop))


def test_nothing_is_known_before_it_was_measured() -> None:
    speed = ReadingSpeed.of_model(INFO)

    assert not speed.is_measured
    assert speed.reading_s(1000) is None
    assert speed.writing_s(10) is None


def test_a_long_prompt_tells_what_any_stretch_takes() -> None:
    speed = ReadingSpeed.of_model(INFO)
    for start in range(0, 6000, 200):
        speed = speed.with_read(start, start + 200, taken(start, start + 200))

    assert speed.reading_s(6000) == pytest.approx(taken(0, 6000), rel=0.02)
    assert speed.reading_s(500, 5000) == pytest.approx(taken(5000, 5500), rel=0.03)
    assert speed.reading_s(20_000) == pytest.approx(taken(0, 20_000), rel=0.05)


def test_a_short_prompt_is_carried_on_by_what_attention_costs_such_a_model() -> None:
    speed = ReadingSpeed.of_model(INFO).with_read(0, 300, 300 * 0.006)

    growth = 2 * 30 * 9 * 64 / 134_500_000
    first = 0.006 / (1 + growth * 150)
    assert speed.reading_s(6000) == pytest.approx(6000 * first * (1 + growth * 3000), rel=0.01)


def test_newer_times_count_more() -> None:
    speed = ReadingSpeed()
    for _ in range(40):
        speed = speed.with_read(0, 1000, 10.0)
    for _ in range(20):
        speed = speed.with_read(0, 1000, 5.0)

    assert speed.reading_s(1000) == pytest.approx(5.0, rel=0.2)


def test_reading_and_writing_are_told_apart() -> None:
    speed = ReadingSpeed().with_read(0, 100, 1.0).with_written(100, 150, 5.0)

    assert speed.is_measured
    assert speed.reading_s(100) == pytest.approx(1.0, rel=0.01)
    assert speed.writing_s(50, 100) == pytest.approx(5.0, rel=0.01)


def test_it_is_the_same_after_it_was_stored() -> None:
    speed = ReadingSpeed.of_model(INFO).with_read(0, 300, 2.0).with_written(300, 320, 1.0)

    assert ReadingSpeed.of_model(INFO, speed.as_text) == speed


@pytest.mark.parametrize("text", ["", "no json", "[]", "{}", '{"read": {}, "written": {}}', '{"read": 3}'])
def test_what_cannot_be_read_is_not_known(text: str) -> None:
    assert ReadingSpeed.of_model(INFO, text) == ReadingSpeed.of_model(INFO)


@pytest.mark.parametrize("damaged", ["NaN", "Infinity", "-1.0", "1e999"])
@pytest.mark.parametrize("name", ["tokens", "position_2", "time"])
def test_nor_is_what_makes_no_sense(damaged: str, name: str) -> None:
    speed = ReadingSpeed.of_model(INFO).with_read(0, 300, 2.0).with_written(300, 320, 1.0)
    sums = json.loads(speed.as_text)
    sums["read"][name] = "here"
    text = json.dumps(sums).replace('"here"', damaged)

    assert ReadingSpeed.of_model(INFO, text) == ReadingSpeed.of_model(INFO)


def test_a_slower_beginning_makes_no_later_token_cost_less_than_nothing() -> None:
    time = TokenTime().with_measured(0, 100, 10.0).with_measured(5000, 5100, 0.1)

    assert time.seconds(100_000, 100_001) == pytest.approx(10.1 / 200, rel=0.02)


Stretches = st.lists(
    st.tuples(st.integers(0, 20_000), st.integers(1, 2000), st.floats(1e-4, 100)), min_size=1, max_size=20
)


@given(Stretches, st.integers(0, 50_000), st.integers(1, 50_000), st.floats(0, 1e-3))
def test_more_tokens_never_take_less(
    stretches: list[tuple[int, int, float]], start: int, num_tokens: int, growth: float
) -> None:
    time = dataclasses.replace(TokenTime(), growth=growth)
    for first, count, seconds in stretches:
        time = time.with_measured(first, first + count, seconds)

    fewer, more = time.seconds(start, start + num_tokens), time.seconds(start, start + num_tokens + 1)
    assert fewer is not None and more is not None
    assert 0 <= fewer <= more
