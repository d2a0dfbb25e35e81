"""Figures for reports and pictures under test."""

from __future__ import annotations

import dataclasses

from engine.bench.trim.figures import (
    LongRun,
    Perplexities,
    SummaryCounts,
    TrimBench,
    TrimmedText,
    TurnFigures,
)

MB = 1_000_000

TEXT = TrimmedText(
    title="prose",
    held_tokens=6100,
    released_tokens=3000,
    summary_tokens=400,
    is_extract=False,
    trimmed_tokens=3500,
    read_tokens=470,
    summary_s=6.5,
    ready_s=2.0,
    mlx_lm_s=30.0,
    read_again_s=25.0,
    perplexity=Perplexities(trimmed=10.2, read_again=10.0, whole=9.5),
)
OTHER_TEXT = dataclasses.replace(
    TEXT, title="letters", is_extract=True, mlx_lm_s=24.0, perplexity=Perplexities(11.0, 10.0, 9.0)
)


def turn(number: int, nbytes: int, released_turns: int = 0, *, is_answered: bool = True) -> TurnFigures:
    """Return the figures of a turn."""
    return TurnFigures(
        number=number,
        prompt_tokens=1000 + number,
        read_tokens=50,
        written_tokens=16,
        nbytes=nbytes,
        process_nbytes=10 * nbytes,
        released_turns=released_turns,
        summary_s=1.5 if released_turns else 0.0,
        first_token_s=0.5,
        idle_s=0.1,
        is_answered=is_answered,
    )


def long_run(sizes: list[int]) -> LongRun:
    """Return a run whose turns take so many megabytes; those that take less than the one before are trims."""
    turns = tuple(
        turn(number, size * MB, 4 if number > 1 and size < sizes[number - 2] else 0)
        for number, size in enumerate(sizes, 1)
    )
    return LongRun(2048, turns, 1, SummaryCounts(3, 2))


RUN = long_run([10, 20, 30] * 20)
RESULT = TrimBench(6000, "CPU", "mlx 1", "8", (TEXT, OTHER_TEXT), RUN)
