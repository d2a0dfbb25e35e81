"""`octavo bench trim`: what it costs that old turns leave a full context."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import click

from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.status_line import StatusLine
from app.cli.trim_report import report, summary
from app.documents.extract import extract
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from engine.bench.prose import all_texts
from engine.bench.trim.figures import TrimBench


@click.command()
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option(
    "--text",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A document to talk about instead of Octavo's own texts; may be given more than once.",
)
@click.option("--tokens", type=click.IntRange(1000), default=6000, show_default=True, help="The limit.")
@click.option(
    "--turns",
    type=click.IntRange(2),
    default=50,
    show_default=True,
    help="Turns of a conversation that goes on beyond a limit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the tables.")
@click.option("--picture", type=OUTPUT_FILE, help="Draw the memory of that conversation, as PNG.")
def trim(
    model: str | None,
    files: tuple[Path, ...],
    tokens: int,
    turns: int,
    as_json: bool,
    picture: Path | None,
) -> None:
    """Measure what it costs that old turns leave a full context.

    A conversation about each text goes over its limit once: old turns are summarized and leave, and what
    stays is not read again. The time and the perplexity of what follows are held against reading what is left
    from the start. Another conversation goes on beyond its limit for many turns, to see whether its memory
    stays the same. It takes about half an hour: leave the computer alone meanwhile.
    """
    if picture:
        require_apart({"--picture": picture, **{f"--text {file}": file for file in files}})
        require_writable(picture, "--picture")
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    texts = {str(file): extract(file).text for file in files} or all_texts()
    result = _run(installed.path, texts, tokens, turns)
    try:
        if as_json:
            click.echo(json.dumps(summary(result), indent=2))
        else:
            click.echo(f"{installed.title}, KV cache {result.kv}")
            click.echo(f"{result.setup}; {result.versions}\n\n{report(result)}")
    finally:  # a reader that went away costs the tables, not the file
        if picture:
            write_files({picture: lambda: _drawn(result)})


def _run(model: Path, texts: Mapping[str, str], tokens: int, turns: int) -> TrimBench:
    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    start_backend()

    from app.trim_bench import TrimBenchPlan, bench_trim

    line = StatusLine()
    try:
        return bench_trim(model, texts, TrimBenchPlan(num_tokens=tokens, num_turns=turns), line.write)
    finally:
        line.end()


def _drawn(result: TrimBench) -> bytes:
    """Return the picture as a PNG."""
    from engine.bench.trim.picture import draw  # slow to import

    drawn = io.BytesIO()
    draw({"summaries": result.long_run}, drawn)
    return drawn.getvalue()
