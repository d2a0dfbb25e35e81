"""The tables and the CSV file of `octavo bench kv`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from app.cli.bars import bar_lines
from engine.bench.kv.figures import KVBench, Prefill, Quality, Row, Step
from engine.wording import format_nbytes

_NAME_WIDTH = 34
_WINDOW_WIDTH = 41
_NONE = "–"
_NOISE = "noise"

BAR_TOKENS = 6000
"""The bars are set for so many tokens of Octavo's own text."""


def report(result: KVBench, own_text: bool) -> str:
    """Return all tables, the bars last; `own_text` says whether Octavo's own text was read."""
    tables = (_quality(result), _prefill(result), _steps(result), _bars(result, own_text))
    return "\n\n".join("\n".join(lines) for lines in tables)


def csv_row(row: Row) -> dict[str, object]:
    """Return the figures of a cache by their names in a CSV file; what was not measured is empty."""
    fields: dict[str, object] = {
        "side": row.kind.side.value,
        "precision": row.kind.precision,
        "at_more_bits": row.kind.window,
    }
    for name, part, kind in (
        ("quality", row.quality, Quality),
        ("prefill", row.prefill, Prefill),
        ("step", row.step, Step),
    ):
        for field in dataclasses.fields(kind):
            fields[f"{name}_{field.name}"] = "" if part is None else getattr(part, field.name)
    return fields


def _quality(result: KVBench) -> list[str]:
    rows = [(row, row.quality) for row in result.rows if row.quality]
    return _table(
        "What precision costs, against mlx-lm's cache at 16 bits",
        ("bytes/token", "KL", "perplexity", "top-1 kept"),
        (
            (
                row,
                [
                    f"{quality.nbytes_per_token:,.0f}",
                    f"{quality.kl:.5f}",
                    f"{quality.perplexity:.3f}",
                    f"{quality.top1:.1%}",
                ],
            )
            for row, quality in rows
        ),
    )


def _prefill(result: KVBench) -> list[str]:
    rows = [(row, row.prefill) for row in result.rows if row.prefill]
    return _table(
        f"Reading {result.num_tokens:,} tokens at once",
        ("tokens/s", "peak", "sealed/token", "whole cache"),
        (
            (
                row,
                [
                    f"{prefill.tps:.1f}",
                    format_nbytes(prefill.peak_nbytes),
                    _number(prefill.sealed_nbytes_per_token, ",.0f"),
                    format_nbytes(prefill.nbytes),
                ],
            )
            for row, prefill in rows
        ),
    )


def _steps(result: KVBench) -> list[str]:
    rows = [(row, row.step) for row in result.rows if row.step]
    lines = _table(
        "Writing a token behind them, in milliseconds",
        ("tokens/s", "total", "attention", "weights", "sampling", "rest", "(queuing)", "caught"),
        (
            (
                row,
                [
                    f"{step.tps:.2f}",
                    *map(_ms, (step.total_s, step.attention_s, step.model_s, step.sampling_s)),
                    _NOISE if step.rest_s < 0 else _ms(step.rest_s),
                    _ms(step.building_s),
                    _number(step.caught, ".1%"),
                ],
            )
            for row, step in rows
        ),
    )
    if any(step.rest_s < 0 for _, step in rows):
        lines.append(f"{_NOISE}: the parts, timed apart, exceed the total; the rest is within the noise")
    return lines


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f}"


def _table(title: str, columns: Sequence[str], rows: Iterable[tuple[Row, list[str]]]) -> list[str]:
    head = f"{'cache':<{_NAME_WIDTH}}{'kept at more bits':<{_WINDOW_WIDTH}}"
    lines = [title, head + "".join(f"{column:>13}" for column in columns)]
    for row, figures in rows:
        name = f"{row.kind.side.value:<8}{row.kind.precision}"
        head = f"{name:<{_NAME_WIDTH}}{row.kind.window or _NONE:<{_WINDOW_WIDTH}}"
        lines.append(head + "".join(f"{figure:>13}" for figure in figures))
    return lines


def _bars(result: KVBench, own_text: bool) -> list[str]:
    are_meant = own_text and result.num_tokens == BAR_TOKENS
    other = f"The bars are for {BAR_TOKENS:,} tokens of Octavo's own text: no verdict on another."
    return bar_lines(result.bars(), f"{BAR_TOKENS:,} tokens of the starter", "" if are_meant else other)


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _NONE if value is None else f"{value:{form}}{unit}"
