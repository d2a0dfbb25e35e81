from __future__ import annotations

import dataclasses
import io

from engine.bench.guard import ConversationRun, GuardBench, GuardEvent
from engine.guard import GuardAction, GuardStep
from tests.engine.memory_samples import MB, samples

LOWERED = GuardAction(GuardStep.LOWER_TIERS, False, "Octavo takes much", "9 pages went to 4 bits.", 50 * MB)
GROWN = GuardAction(GuardStep.SMALLER_CHUNKS, True, "memory is free", "Pieces have their size again.")

TAKEN = tuple(
    dataclasses.replace(sample, process_nbytes=nbytes * MB)
    for sample, nbytes in zip(samples("nnwwn"), (300, 500, 620, 700, 400), strict=True)
)
FREE = ConversationRun(None, 300 * MB, TAKEN, (), 6, 7500, 0, 0, ())
GUARDED = dataclasses.replace(
    FREE,
    most_nbytes=600 * MB,
    events=(GuardEvent(2.5, LOWERED, 550 * MB), GuardEvent(3.5, GROWN, 400 * MB)),
)
RESULT = GuardBench(FREE, GUARDED)


def test_the_most_that_was_taken_is_that_of_the_fullest_sample() -> None:
    assert FREE.most_taken_nbytes == 700 * MB
    assert dataclasses.replace(FREE, samples=()).most_taken_nbytes == 300 * MB


def test_time_above_the_limit_is_counted_from_sample_to_sample() -> None:
    assert GUARDED.over_s == 2.0
    assert FREE.over_s == 0.0


def test_the_picture_is_a_png_of_its_size() -> None:
    from engine.bench.guard_picture import draw

    drawn = io.BytesIO()
    draw(RESULT, drawn)
    content = drawn.getvalue()
    assert content.startswith(b"\x89PNG")
    width, height = (int.from_bytes(content[start : start + 4]) for start in (16, 20))
    assert (width, height) == (1430, 715)
