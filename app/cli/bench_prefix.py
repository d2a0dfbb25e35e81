"""`octavo bench prefix`: what it saves that what was read is kept on disk."""

from __future__ import annotations

import json
from pathlib import Path

import click

from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.prefix_report import csv_rows, report, summary
from app.cli.status_line import StatusLine
from app.command_line import app_command
from app.csv_file import csv_content
from app.documents.extract import extract
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from app.prefix_bench.bench import PrefixBenchPlan, bench_prefix
from app.prefix_bench.order import Order, Outcome
from engine.bench.child import run_for_last_line
from engine.bench.prefix.figures import PrefixBench
from engine.bench.prose import TEXT


@click.command()
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option(
    "--text", type=click.Path(path_type=Path), help="A document to read instead of Octavo's own text."
)
@click.option("--tokens", type=click.IntRange(2), default=6000, show_default=True, help="Length of the text.")
@click.option(
    "--answer-tokens", type=click.IntRange(2), default=32, show_default=True, help="Length of an answer."
)
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Restarts of each kind.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the tables.")
@click.option("--csv", "csv_file", type=OUTPUT_FILE, help="Write every figure, as CSV.")
def prefix(
    model: str | None,
    text: Path | None,
    tokens: int,
    answer_tokens: int,
    runs: int,
    as_json: bool,
    csv_file: Path | None,
) -> None:
    """Measure what it saves to read ahead, and that what was read is kept on disk.

    A document is read and kept, and asked about by processes that are started afresh; mlx-lm saves and loads
    its own cache of the same text. It takes some minutes and writes some gigabytes to the disk with the data
    folder, which are removed: leave the computer alone meanwhile.
    """
    if csv_file:
        require_apart({"--text": text, "--csv": csv_file})
        require_writable(csv_file, "--csv")
    paths = AppPaths.from_environment()
    installed = ModelLibrary(paths).named_or_default(model)
    words = TEXT if text is None else extract(text).text
    result = _run(installed.path, words, PrefixBenchPlan(tokens, runs, answer_tokens), paths.home)
    try:
        if as_json:
            click.echo(json.dumps(summary(result), indent=2))
        else:
            click.echo(f"{installed.title}, KV cache {result.kv}, medians of {runs}")
            click.echo(f"{result.setup}; {result.versions}\n\n{report(result)}")
    finally:  # a reader that went away costs the tables, not the file
        if csv_file:
            write_files({csv_file: lambda: csv_content(csv_rows(result))})


def _run(model: Path, text: str, plan: PrefixBenchPlan, folder: Path) -> PrefixBench:
    line = StatusLine()
    try:
        return bench_prefix(model, text, plan, folder, _in_a_process, line.write)
    finally:
        line.end()


def _in_a_process(order: Order) -> Outcome:
    command = [*app_command(), "bench", "prefix-phase", order.to_json()]
    return Outcome.from_json(run_for_last_line(command))


@click.command("prefix-phase", hidden=True)
@click.argument("order")
def prefix_phase(order: str) -> None:
    """Do one part of the bench in this process, and print the figures as JSON."""
    ordered = Order.from_json(order)

    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    start_backend()

    from app.prefix_bench.phases import run_phase

    click.echo(run_phase(ordered).to_json())
