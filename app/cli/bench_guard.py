"""`octavo bench guard`: a long conversation in little memory."""

from __future__ import annotations

import io
import time
from pathlib import Path

import click

from app.cli.finite_range import FiniteRange
from app.cli.guard_report import event_line, report
from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.status_line import StatusLine
from app.memory_csv import memory_csv
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from engine.bench.guard import DEFAULT_KV, NUM_TURNS, GuardBench, GuardBenchPlan, GuardEvent
from engine.errors import OctavoError
from engine.kv.precision import KVSpec


@click.command()
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option("--kv", default=DEFAULT_KV, show_default=True, help="KV cache precision, as for `octavo ask`.")
@click.option(
    "--share",
    type=FiniteRange(0, 1, min_open=True),
    default=0.6,
    show_default=True,
    help="What it gets of the memory that the conversation takes without a guard.",
)
@click.option("--may-trim", is_flag=True, help="Let the oldest turns leave the context.")
@click.option(
    "--csv",
    "csv_file",
    type=OUTPUT_FILE,
    default="octavo-guard.csv",
    show_default=True,
    help="Memory with the guard, as CSV.",
)
@click.option(
    "--picture",
    type=OUTPUT_FILE,
    default="octavo-guard.png",
    show_default=True,
    help="The same as a curve, with the guard's steps, as PNG.",
)
def guard(model: str | None, kv: str, share: float, may_trim: bool, csv_file: Path, picture: Path) -> None:
    """Hold a long conversation in less memory than it would take.

    It is held twice: without a guard, to see what it takes, and then with one in less. Each step of the guard
    is told as it is taken. It takes some minutes.
    """
    require_apart({"--csv": csv_file, "--picture": picture})
    require_writable(csv_file, "--csv")
    require_writable(picture, "--picture")
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    plan = GuardBenchPlan(installed.path, KVSpec.parse(kv), share, may_trim)
    click.echo(f"{installed.title}: a conversation of {NUM_TURNS} long turns, KV cache {plan.kv}\n")
    result = _run(plan)
    try:
        click.echo(f"\n{report(result)}\n")
    finally:  # a reader that went away costs the report, not the files
        write_files({csv_file: lambda: memory_csv(result.guarded.samples), picture: lambda: _drawn(result)})
    click.echo(f"Written: {csv_file}, {picture}")
    if result.guarded.problems:
        raise OctavoError("The conversation did not come through whole.")


def _run(plan: GuardBenchPlan) -> GuardBench:
    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    start_backend()

    from app.guard_bench import bench_guard

    line, begun_s = StatusLine(), time.monotonic()

    def show_event(event: GuardEvent) -> None:
        line.clear()
        click.echo(event_line(event, begun_s))

    def show_question(number: int, has_guard: bool) -> None:
        nonlocal begun_s
        if number == 1:  # the file and the picture count from here, too
            begun_s = time.monotonic()
        line.write(f"{'With' if has_guard else 'Without'} guard: question {number} of {NUM_TURNS}")

    try:
        return bench_guard(plan, show_event, show_question)
    finally:
        line.end()


def _drawn(result: GuardBench) -> bytes:
    """Return the picture as a PNG."""
    from engine.bench.guard_picture import draw  # slow to import

    drawn = io.BytesIO()
    draw(result, drawn)
    return drawn.getvalue()
