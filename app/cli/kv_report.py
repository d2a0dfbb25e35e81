"""The tables and the CSV file of `octavo bench kv`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from engine.bench.kv.figures import Bar, KVBench, Prefill, Quality, Row, Step
from engine.wording import format_nbytes

_NAME_WIDTH = 34
_WINDOW_WIDTH = 41
_NONE = "–"


def report(result: KVBench) -> str:
    """Return all tables, the bars last."""
    return "\n\n".join(
        "\n".join(lines) for lines in (_quality(result), _prefill(result), _steps(result), _bars(result))
    )


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
    return _table(
        "Writing a token behind them, in milliseconds",
        ("tokens/s", "total", "attention", "weights", "sampling", "rest", "(queuing)", "caught"),
        (
            (
                row,
                [
                    f"{step.tps:.2f}",
                    *(
                        f"{1000 * seconds:.1f}"
                        for seconds in (
                            step.total_s,
                            step.attention_s,
                            step.model_s,
                            step.sampling_s,
                            step.rest_s,
                            step.building_s,
                        )
                    ),
                    _number(step.caught, ".1%"),
                ],
            )
            for row, step in rows
        ),
    )


def _table(title: str, columns: Sequence[str], rows: Iterable[tuple[Row, list[str]]]) -> list[str]:
    head = f"{'cache':<{_NAME_WIDTH}}{'kept at more bits':<{_WINDOW_WIDTH}}"
    lines = [title, head + "".join(f"{column:>13}" for column in columns)]
    for row, figures in rows:
        name = f"{row.kind.side.value:<8}{row.kind.precision}"
        head = f"{name:<{_NAME_WIDTH}}{row.kind.window or _NONE:<{_WINDOW_WIDTH}}"
        lines.append(head + "".join(f"{figure:>13}" for figure in figures))
    return lines


def _bars(result: KVBench) -> list[str]:
    lines = [f"{'Bar, set for 6,000 tokens of the starter':<52}{'asked':>12}{'measured':>12}"]
    for bar in result.bars():
        asked = f"{'≥' if bar.is_least else '≤'} {bar.limit:.2f}x"
        lines.append(
            f"{bar.title:<52}{asked:>12}{_number(bar.figure, '.3f', 'x'):>12}   {_verdict(bar)}".rstrip()
        )
    return lines


def _verdict(bar: Bar) -> str:
    return {None: "not measured", True: "met", False: "not met"}[bar.met]


def _number(value: float | None, form: str, unit: str = "") -> str:
    return _NONE if value is None else f"{value:{form}}{unit}"
