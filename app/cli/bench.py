"""`octavo bench`: how fast this computer is with Octavo, and what the precision of the KV cache costs."""

from __future__ import annotations

import dataclasses
import io
import json
import statistics
from pathlib import Path
from typing import Any

import click

from app.cli.bench_conversation import conversation
from app.cli.bench_document import document
from app.cli.bench_guard import guard
from app.cli.bench_prefix import prefix, prefix_phase
from app.cli.bench_trim import trim
from app.cli.kv_report import csv_row, report
from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.pace import Pace
from app.cli.status_line import StatusLine
from app.command_line import app_command
from app.csv_file import csv_content
from app.documents.extract import extract
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from app.stop_bench import StopTiming, bench_stop
from engine.bench.decode import DecodeBench, bench_decode
from engine.bench.kv.bench import KVBenchPlan, bench_kv
from engine.bench.kv.figures import KVBench
from engine.bench.measure import Measurement, Side, measure
from engine.bench.prose import TEXT

STAGE_INTERVAL_S = 0.2

_model = click.option(
    "--model", help="A model's id, name or path.  [default: the only one, else the starter]"
)
_prompt_tokens = click.option(
    "--prompt-tokens", type=click.IntRange(8), default=512, show_default=True, help="Length of the prompt."
)
_answer_tokens = click.option(
    "--tokens", type=click.IntRange(2), default=32, show_default=True, help="Length of the answer."
)


@click.group()
def bench() -> None:
    """Measure speed and quality on this computer."""


bench.add_command(conversation)
bench.add_command(document)
bench.add_command(guard)
bench.add_command(prefix)
bench.add_command(prefix_phase)
bench.add_command(trim)


@bench.command()
@_model
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Runs of each side.")
@_prompt_tokens
@_answer_tokens
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table.")
@click.option("--csv", "csv_file", type=OUTPUT_FILE, help="Write each run.")
def decode(
    model: str | None, runs: int, prompt_tokens: int, tokens: int, as_json: bool, csv_file: Path | None
) -> None:
    """Compare Octavo with mlx-lm as installed.

    Both read the same prompt and write an answer, in processes of their own, by turns. Leave the computer
    alone meanwhile.
    """
    if csv_file:
        require_writable(csv_file, "--csv")
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    if not as_json:
        click.echo(f"{installed.title}: {prompt_tokens} tokens read, {tokens} written, medians of {runs}\n")
    result = bench_decode(
        installed.path,
        [*app_command(), "bench"],
        runs=runs,
        prompt_tokens=prompt_tokens,
        answer_tokens=tokens,
        on_measured=lambda one: None if as_json else click.echo(_line(one.side.value, one)),
    )
    try:
        click.echo(json.dumps(_summary(result), indent=2) if as_json else _table(result))
    finally:  # a reader that went away costs the table, not the file
        if csv_file:
            write_files({csv_file: lambda: csv_content([_fields(one) for one in result.measurements])})


@bench.command()
@_model
@click.option("--runs", type=click.IntRange(1), default=8, show_default=True, help="Stops of each kind.")
@click.option("--prompt-tokens", type=click.IntRange(100), default=6000, show_default=True)
def stop(model: str | None, runs: int, prompt_tokens: int) -> None:
    """Measure how long a stop takes, at any moment."""
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    click.echo(f"{'from the request to the end of':<46}{'stops':>6}{'median':>10}{'longest':>10}")
    for timing in bench_stop(installed.path, runs=runs, prompt_tokens=prompt_tokens):
        figures = [f"{figure * 1000:.0f} ms" for figure in _middle_and_longest(timing)]
        click.echo(f"{timing.work:<46}{len(timing.stopped_s):>6}" + "".join(f"{f:>10}" for f in figures))


def _middle_and_longest(timing: StopTiming) -> tuple[float, float] | tuple[()]:
    if not timing.stopped_s:
        return ()
    return statistics.median(timing.stopped_s), max(timing.stopped_s)


@bench.command()
@_model
@click.option(
    "--text", type=click.Path(path_type=Path), help="A document to read instead of Octavo's own text."
)
@click.option("--tokens", type=click.IntRange(2), default=6000, show_default=True, help="Length of the text.")
@click.option(
    "--answer-tokens", type=click.IntRange(2), default=32, show_default=True, help="Length of an answer."
)
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Answers of each cache.")
@click.option(
    "--csv",
    "csv_file",
    type=OUTPUT_FILE,
    default="octavo-kv.csv",
    show_default=True,
    help="Every figure, as CSV.",
)
@click.option(
    "--picture",
    type=OUTPUT_FILE,
    default="octavo-kv.png",
    show_default=True,
    help="Quality against bytes, as PNG.",
)
def kv(
    model: str | None,
    text: Path | None,
    tokens: int,
    answer_tokens: int,
    runs: int,
    csv_file: Path,
    picture: Path,
) -> None:
    """Compare the KV cache with mlx-lm's: quality, bytes, speed.

    All caches read the same text with the same loaded weights, in one process. It takes a while, mostly
    mlx-lm's: leave the computer alone meanwhile.
    """
    require_apart({"--text": text, "--csv": csv_file, "--picture": picture})
    require_writable(csv_file, "--csv")
    require_writable(picture, "--picture")
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    words, stages = TEXT if text is None else extract(text).text, _Stages()
    try:
        result = bench_kv(installed.path, words, KVBenchPlan(tokens, answer_tokens, runs), stages.show)
    finally:
        stages.end()
    try:
        click.echo(f"{installed.title}: {tokens:,} tokens read, {answer_tokens} written, medians of {runs}")
        click.echo(f"{result.setup}; {result.versions}\n\n{report(result, text is None)}\n")
    finally:  # a reader that went away costs the tables, not the files
        write_files({csv_file: lambda: _kv_csv(result), picture: lambda: _drawn(result)})
    click.echo(f"Written: {csv_file}, {picture}")


def _kv_csv(result: KVBench) -> bytes:
    """Return a line of CSV for each cache."""
    return csv_content([csv_row(row) for row in result.rows])


def _drawn(result: KVBench) -> bytes:
    """Return the picture as a PNG."""
    from engine.bench.kv.picture import draw  # slow to import

    drawn = io.BytesIO()
    draw(result, drawn)
    return drawn.getvalue()


class _Stages:
    """What is being measured, on a line that is written over; without a terminal a line for each stage."""

    def __init__(self) -> None:
        self._line = StatusLine()
        self._pace = Pace(STAGE_INTERVAL_S)
        self._stage = ""
        self.end = self._line.end

    def show(self, stage: str, total: int, done: int) -> None:
        """Write what is new."""
        if stage != self._stage or (self._line.on_terminal and self._pace.is_due()):
            of_total = f": {done:,} of {total:,} tokens" if total and self._line.on_terminal else ""
            self._line.write(stage + of_total)
        self._stage = stage


@bench.command("measure", hidden=True)
@click.argument("side", type=click.Choice([side.value for side in Side]))
@click.argument("path", type=click.Path(path_type=Path))
@_prompt_tokens
@_answer_tokens
def measure_side(side: str, path: Path, prompt_tokens: int, tokens: int) -> None:
    """Measure one side in this process and print the figures as JSON."""
    figures = measure(Side(side), path, prompt_tokens=prompt_tokens, answer_tokens=tokens)
    click.echo(json.dumps(_fields(figures)))


@bench.command("write-folder", hidden=True)
@click.argument("gguf", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def write_folder(gguf: Path, folder: Path) -> None:
    """Write a GGUF file as an MLX folder."""
    from engine.bench.mlx_folder import write_mlx_folder

    write_mlx_folder(gguf, folder)


def _fields(one: Measurement) -> dict[str, Any]:
    return dataclasses.asdict(one) | {"side": one.side.value}


def _summary(result: DecodeBench) -> dict[str, Any]:
    return {
        "prefill_ratio": result.prefill_ratio,
        "decode_ratio": result.decode_ratio,
        "medians": {
            side.value: {"prefill_tps": result.prefill_tps(side), "decode_tps": result.decode_tps(side)}
            for side in Side
        },
        "runs": [_fields(one) for one in result.measurements],
    }


def _line(title: str, one: Measurement) -> str:
    return f"{title:<8}{one.prefill_tps:10.1f} tokens/s read{one.decode_tps:10.2f} tokens/s written"


def _table(result: DecodeBench) -> str:
    lines = [f"\n{'median':<8}{'read':>10}{'written':>12}"]
    for side in Side:
        lines.append(f"{side.value:<8}{result.prefill_tps(side):10.1f}{result.decode_tps(side):12.2f}")
    lines.append(f"{'ratio':<8}{result.prefill_ratio:9.1f}x{result.decode_ratio:11.2f}x\n")
    setups = {one.side: f"{one.side.value}: {one.setup}; {one.versions}" for one in result.measurements}
    return "\n".join([*lines, *setups.values()])
