"""The tables and the JSON object of `octavo bench trim`."""

from __future__ import annotations

import dataclasses
from typing import Any

from app.cli.bars import bar_lines
from engine.bench.trim.figures import LongRun, TrimBench, TrimmedText
from engine.wording import format_nbytes

BAR_TOKENS = 6000
LEAST_BAR_TEXTS = 4
"""The bars are set for conversations of so many tokens about at least so many texts."""


def report(result: TrimBench) -> str:
    """Return all tables, the bars last."""
    tables = (_times(result), _perplexities(result), _long_run(result.long_run), _bars(result))
    return "\n\n".join("\n".join(lines) for lines in tables)


def summary(result: TrimBench) -> dict[str, Any]:
    """Return all figures as JSON takes them."""
    texts = [
        dataclasses.asdict(text) | {"speedup": text.speedup, "excess": text.perplexity.excess}
        for text in result.texts
    ]
    run = result.long_run
    long_run = dataclasses.asdict(run) | {"spread": run.spread, "growth": run.growth}
    bars = [dataclasses.asdict(bar) | {"met": bar.met} for bar in result.bars()]
    return dataclasses.asdict(result) | {
        "texts": texts,
        "long_run": long_run,
        "speedup": result.speedup,
        "excess": result.excess,
        "bars": bars,
    }


def _width(result: TrimBench) -> int:
    return max(len("text"), *(len(text.title) for text in result.texts)) + 2


def _times(result: TrimBench) -> list[str]:
    head = ("held", "left", "summary", "then", "read", "ready in", "mlx-lm", "Octavo", "times", "written in")
    width = _width(result)
    lines = [
        f"From a question over {result.limit_tokens:,} tokens to the next token, and reading what is left",
        f"{'text':<{width}}" + "".join(f"{column:>11}" for column in head),
    ]
    for text in result.texts:
        lines.append(f"{text.title:<{width}}" + "".join(f"{figure:>11}" for figure in _time_figures(text)))
    if any(text.is_extract for text in result.texts):
        lines.append("*: an extract, as what the model wrote could not be used")
    return lines


def _time_figures(text: TrimmedText) -> list[str]:
    return [
        f"{text.held_tokens:,}",
        f"{text.released_tokens:,}",
        f"{text.summary_tokens:,}{'*' if text.is_extract else ''}",
        f"{text.trimmed_tokens:,}",
        f"{text.read_tokens:,}",
        f"{text.ready_s:.2f} s",
        f"{text.mlx_lm_s:.1f} s",
        f"{text.read_again_s:.1f} s",
        f"{text.speedup:.1f}x",
        f"{text.summary_s:.1f} s",
    ]


def _perplexities(result: TrimBench) -> list[str]:
    width = _width(result)
    lines = [
        "Perplexity of what follows",
        f"{'text':<{width}}{'trimmed':>11}{'read again':>12}{'above':>9}{'nothing left out':>18}",
    ]
    for text in result.texts:
        one = text.perplexity
        lines.append(
            f"{text.title:<{width}}{one.trimmed:>11.3f}{one.read_again:>12.3f}{one.excess:>9.1%}{one.whole:>18.3f}"
        )
    return lines


def _long_run(run: LongRun) -> list[str]:
    steady = run.steady
    sizes = [turn.nbytes for turn in steady]
    return [
        f"{len(run.turns)} turns beyond a limit of {run.limit_tokens:,} tokens: {run.num_answered} answered, "
        f"trims: {len(run.trims)}",
        f"summaries: {run.summaries.model} by the model, {run.summaries.extract} by rules; read again for "
        f"positions: {run.num_rebuilds} times",
        f"keys and values over the last {len(steady)} turns: {format_nbytes(min(sizes))} to "
        f"{format_nbytes(max(sizes))}, {run.spread:.2f}x",
    ]


def _bars(result: TrimBench) -> list[str]:
    setup = f"{BAR_TOKENS:,} tokens of the starter"
    are_meant = result.limit_tokens == BAR_TOKENS and len(result.texts) >= LEAST_BAR_TEXTS
    other = (
        f"The bars are for {BAR_TOKENS:,} tokens and at least {LEAST_BAR_TEXTS} texts: no verdict on less."
    )
    return bar_lines(result.bars(), setup, "" if are_meant else other)
