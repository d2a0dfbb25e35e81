"""At how many tokens a trim is due, and what is left then."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.planning import ContextRoom
from app.profiles import LEAST_KEPT, LEAST_TRIM_AT, MOST_KEPT, Overflow
from app.reply_settings import ReplySettings
from engine.kv.precision import KVSpec
from engine.requests import PromptSize
from engine.sampling import SamplingParams

SETTINGS = ReplySettings(SamplingParams(max_tokens=2048), KVSpec.parse("8"), "", 4096, Overflow.SUMMARIZE)
ROOMY = 1_000_000


def room(num_tokens: int, settings: ReplySettings = SETTINGS, fitting: int = ROOMY) -> ContextRoom:
    return ContextRoom.of(PromptSize(num_tokens, 0, fitting), 8192, settings)


def changed(**changes: object) -> ReplySettings:
    return dataclasses.replace(SETTINGS, **changes)  # type: ignore[arg-type]


def test_it_is_due_when_a_quarter_of_the_context_is_no_longer_there_for_the_answer() -> None:
    assert [room(3072).is_due, room(3073).is_due] == [False, True]
    assert room(3073).kept_tokens == 2457  # 60 % of 4,096
    short = changed(sampling=SamplingParams(max_tokens=100))
    assert [room(3996, short).is_due, room(3997, short).is_due] == [False, True]


def test_without_a_limit_of_its_own_the_models_positions_are_the_context() -> None:
    assert room(6145, changed(max_context=None)).is_due
    assert not room(6144, changed(max_context=None)).is_due
    assert not room(6144, changed(max_context=512, anyway=True)).is_due


def test_it_is_due_earlier_at_a_lower_threshold_and_leaves_less() -> None:
    early = changed(trim_at=0.75)
    assert [room(2048, early).is_due, room(2049, early).is_due] == [False, True]
    assert room(2049, early).kept_tokens == 1843  # nine tenths of 2,048, as 60 % would be due again


def test_memory_that_is_short_leaves_room_for_the_shortest_answer_and_counts_as_the_context() -> None:
    assert [room(2000, fitting=2016).is_due, room(2001, fitting=2016).is_due] == [False, True]
    assert room(2001, fitting=2016).kept_tokens == 1209
    assert not room(2001, changed(anyway=True), fitting=2016).is_due


def test_a_summary_is_prepared_at_80_percent_of_what_makes_a_trim_due() -> None:
    assert room(0).prepare_tokens == 3276 - 1024


@given(
    st.integers(512, 100_000),
    st.floats(LEAST_TRIM_AT, 1),
    st.floats(LEAST_KEPT, MOST_KEPT),
    st.integers(1, 100_000),
    st.integers(600, ROOMY),
)
def test_what_a_trim_leaves_is_never_due_again_at_once(
    max_context: int, trim_at: float, keep_ratio: float, max_tokens: int, fitting: int
) -> None:
    settings = changed(
        max_context=max_context,
        trim_at=trim_at,
        keep_ratio=keep_ratio,
        sampling=SamplingParams(max_tokens=max_tokens),
    )
    found = room(0, settings, fitting)
    assert 0 < found.kept_tokens < found.due_tokens
    assert found.prepare_tokens < found.due_tokens
    assert not room(found.kept_tokens, settings, fitting).is_due


@pytest.mark.parametrize("max_context", [512, 4096])
def test_the_least_context_can_be_trimmed_too(max_context: int) -> None:
    found = room(0, changed(max_context=max_context))
    assert found.kept_tokens == int(0.6 * max_context)
