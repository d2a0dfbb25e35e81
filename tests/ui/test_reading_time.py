from __future__ import annotations

import dataclasses

import pytest

from engine.admission import InSegments
from engine.events import GenerationStats, StopReason
from engine.kv.precision import KVSpec
from ui.reading_time import duration_words, reading_s

NOTHING = GenerationStats.of_nothing(KVSpec.parse("8"), StopReason.END)


def test_the_time_is_that_of_reading_all_tokens_and_writing_a_note_on_each_part() -> None:
    stats = dataclasses.replace(NOTHING, prefill_tps=50.0, decode_tps=10.0)
    assert reading_s(InSegments(4, 20_000), stats) == pytest.approx(400 + 40)


def test_nothing_is_said_before_a_speed_was_measured() -> None:
    assert reading_s(InSegments(4, 20_000), None) is None
    assert reading_s(InSegments(4, 20_000), NOTHING) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (20, "less than a minute"),
        (61, "about 1 minute"),
        (440, "about 7 minutes"),
        (3_600 * 2.2, "about 2 hours"),
        (3_600 * 30, "about 30 hours"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_suits_it(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words
