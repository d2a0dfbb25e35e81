"""`octavo bench conversation`: a long conversation about a document that does not fit its context."""

from __future__ import annotations

import io
from pathlib import Path

import click

from app.cli.conversation_report import NAMES, csv_rows, report
from app.cli.output_file import OUTPUT_FILE, require_apart, require_writable
from app.cli.status_line import StatusLine
from app.csv_file import csv_content
from app.documents.extract import extract
from app.kv_config import LEAST_CONTEXT, MOST_CONTEXT
from app.long_talk.figures import ConversationBench
from app.models.library import ModelLibrary
from app.output_files import write_files
from app.paths import AppPaths
from app.profiles import Overflow
from engine.errors import OctavoError

POLICIES = (Overflow.SUMMARIZE, Overflow.DROP)


@click.command()
@click.option(
    "--document", required=True, type=click.Path(path_type=Path), help="What the conversation is about."
)
@click.option("--model", help="A model's id, name or path.  [default: the only one, else the starter]")
@click.option("--turns", type=click.IntRange(1), default=60, show_default=True, help="Questions.")
@click.option(
    "--max-context",
    type=click.IntRange(LEAST_CONTEXT, MOST_CONTEXT),
    default=4096,
    show_default=True,
    help="Tokens of prompt and answer together.",
)
@click.option(
    "--policy",
    type=click.Choice([policy.value for policy in POLICIES]),
    help="What happens to old turns.  [default: one conversation each]",
)
@click.option(
    "--csv",
    "csv_file",
    type=OUTPUT_FILE,
    default="octavo-conversation.csv",
    show_default=True,
    help="Every turn, as CSV.",
)
@click.option(
    "--picture",
    type=OUTPUT_FILE,
    default="octavo-conversation.png",
    show_default=True,
    help="The memory turn by turn, as PNG.",
)
def conversation(
    document: Path,
    model: str | None,
    turns: int,
    max_context: int,
    policy: str | None,
    csv_file: Path,
    picture: Path,
) -> None:
    """Hold a long conversation about a document in a context that is too short for it.

    The document is handed over part by part, every fourth turn, with questions between that ask for numbers
    and names in it. At the end those are asked for again whose part has left the context. It takes about half
    an hour for each policy.
    """
    require_apart({"--document": document, "--csv": csv_file, "--picture": picture})
    require_writable(csv_file, "--csv")
    require_writable(picture, "--picture")
    installed = ModelLibrary(AppPaths.from_environment()).named_or_default(model)
    policies = POLICIES if policy is None else (Overflow(policy),)
    click.echo(f"{installed.title}: {turns} turns about {document.name}\n")
    result = _run(installed.path, document, turns, max_context, policies)
    try:
        click.echo(report(result))
    finally:  # a reader that went away costs the report, not the files
        write_files({csv_file: lambda: csv_content(csv_rows(result)), picture: lambda: _drawn(result)})
    click.echo(f"\nWritten: {csv_file}, {picture}")
    if any(held.run.num_answered < len(held.run.turns) for held in result.conversations):
        raise OctavoError("Not every turn was answered.")


def _run(
    model: Path, document: Path, turns: int, max_context: int, policies: tuple[Overflow, ...]
) -> ConversationBench:
    read = extract(document)

    # Nothing may import MLX before the backend is prepared.
    from engine.backend import start_backend

    start_backend()

    from app.conversation_bench import ConversationPlan, bench_conversation

    line = StatusLine()

    def show(overflow: Overflow, number: int, total: int) -> None:
        line.write(f"{NAMES[overflow].capitalize()}: question {number} of {total}")

    try:
        return bench_conversation(model, ConversationPlan(read, turns, max_context, policies), show)
    finally:
        line.end()


def _drawn(result: ConversationBench) -> bytes:
    """Return the picture as a PNG."""
    from engine.bench.trim.picture import draw  # slow to import

    drawn = io.BytesIO()
    draw({NAMES[held.overflow]: held.run for held in result.conversations}, drawn)
    return drawn.getvalue()
