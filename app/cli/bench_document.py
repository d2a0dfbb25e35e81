"""`octavo bench document`: how many facts of a long document are found, by each way to read it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.document_bench_report import report
from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.status_line import StatusLine
from app.document_bench.answers import AnswerFile
from app.document_bench.figures import BenchWay, DocumentBench, DocumentBenchPlan
from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT
from app.memory_csv import memory_csv
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths

if TYPE_CHECKING:
    WaysParamType = click.ParamType[tuple[BenchWay, ...]]
else:
    WaysParamType = click.ParamType  # generic in newer versions of click only

ALL_WAYS = ",".join(way.value for way in BenchWay)


class Ways(WaysParamType):
    """Ways to read a document, separated by commas."""

    name = "ways"

    def convert(
        self, value: object, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[BenchWay, ...]:
        """Return the ways that a text names, each once."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(dict.fromkeys(BenchWay(name.strip()) for name in str(value).split(",")))
        except ValueError:
            self.fail(f"{value} are no ways; they are {ALL_WAYS}.", parameter, context)


@click.command()
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option("--ways", type=Ways(), default=ALL_WAYS, show_default=True, help="How it is read.")
@click.option(
    "--tokens", type=click.IntRange(1000), default=60_000, show_default=True, help="Length of the handbook."
)
@click.option("--facts", type=click.IntRange(1), default=40, show_default=True, help="Facts to plant.")
@click.option(
    "--ask",
    type=click.IntRange(1),
    help="How many of the facts to ask for, evenly spread.  [default: all]",
)
@click.option(
    "--context",
    type=click.IntRange(LEAST_CONTEXT, MOST_CONTEXT),
    help="Tokens of prompt and answer together.  [default: what fits]",
)
@click.option(
    "--csv",
    "csv_file",
    type=OUTPUT_FILE,
    default="octavo-document.csv",
    show_default=True,
    help="Every answer, as CSV, written after each.",
)
@click.option(
    "--continue", "goes_on", is_flag=True, help="Ask only what has no answer yet in the file of --csv."
)
@click.option(
    "--memory-csv",
    "memory_file",
    type=OUTPUT_FILE,
    default="octavo-document-memory.csv",
    show_default=True,
    help="The memory over time, as CSV.",
)
@click.option(
    "--picture",
    type=OUTPUT_FILE,
    default="octavo-document.png",
    show_default=True,
    help="The memory over time, as PNG.",
)
def document(
    model: str | None,
    ways: tuple[BenchWay, ...],
    tokens: int,
    facts: int,
    ask: int | None,
    context: int | None,
    csv_file: Path,
    goes_on: bool,
    memory_file: Path,
    picture: Path,
) -> None:
    """Ask for facts of a long document, by each way to read it.

    The document is a handbook that is made for this, the same one each time, with numbers, names, dates and
    nested clauses planted in it, and wrong answers near them. Every second question uses other words than the
    document. `truncated` reads as much of its beginning as fits. In segments it takes hours on a small
    computer: ask for fewer facts, go on with `--continue` where it was stopped, and leave the computer alone
    meanwhile.
    """
    files = {"--csv": csv_file, "--memory-csv": memory_file, "--picture": picture}
    require_apart(files)
    for option, file in files.items():
        require_writable(file, option)
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    run = f"{installed.title}: {facts} facts in {tokens:,} tokens"
    click.echo(f"{run}\n")
    answers = AnswerFile(csv_file, run if context is None else f"{run}, context {context:,}", goes_on=goes_on)
    result = _run(installed.path, DocumentBenchPlan(tokens, facts, ways, context, ask), answers)
    try:
        click.echo(report(result))
    finally:  # a reader that went away costs the report, not the files
        answers.write()
        write_files({memory_file: lambda: memory_csv(result.samples), picture: lambda: _drawn(result)})
    click.echo(f"\nWritten: {csv_file}, {memory_file}, {picture}")


def _run(model: Path, plan: DocumentBenchPlan, answers: AnswerFile) -> DocumentBench:
    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    start_backend()

    from app.document_bench.bench import bench_document

    line = StatusLine()

    def show(way: BenchWay, number: int, total: int) -> None:
        line.write(f"{way.value}: question {number} of {total}")

    try:
        return bench_document(model, plan, show, answers.add, answers.earlier)
    finally:
        line.end()


def _drawn(result: DocumentBench) -> bytes:
    """Return the picture as a PNG."""
    from app.document_bench.picture import draw  # slow to import

    drawn = io.BytesIO()
    draw(result, drawn)
    return drawn.getvalue()
