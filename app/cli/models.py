"""`octavo models`: list, get, import and remove."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import click

from app.cli import INTERRUPTED
from app.cli.pace import Pace
from app.cli.status_line import StatusLine
from app.models.catalogue import catalogue
from app.models.download import DownloadLine, get_model
from app.models.library import ModelLibrary
from app.models.progress import DownloadProgress
from app.paths import AppPaths
from engine.cancel import CancelToken
from engine.errors import OctavoError
from engine.wording import format_nbytes

JSON_INTERVAL_S = 0.1
LINE_INTERVAL_S = 0.2
LOG_STEP_PERCENT = 10
RESUMES = "What has arrived is kept: the same command goes on with it."


@click.group()
def models() -> None:
    """Show, get and remove models."""


@models.command("list")
def list_models() -> None:
    """Show the models on this computer and those that can be had."""
    library = _library()
    installed = library.installed()
    click.echo("Installed:" if installed else "No model is installed yet.")
    for model in installed:
        where = "" if model.managed else f"  at {model.path}"
        click.echo(f"  {model.id:<48} {format_nbytes(model.nbytes):>7}  {model.title}{where}")
    unfinished = library.unfinished()
    if unfinished:
        click.echo(f"\nBegun, go on with `octavo models get`: {', '.join(unfinished)}")
    ids = {model.id for model in installed}
    click.echo("\nTo get with `octavo models get` (any other name on huggingface.co works as well):")
    for entry in catalogue():
        if entry.id not in ids:
            click.echo(f"  {entry.id:<48} {format_nbytes(entry.nbytes):>7}  {entry.licence}")
            click.echo(f"      {entry.description}")


@models.command()
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line, for programs.")
def get(source: str, as_json: bool) -> None:
    """Download SOURCE: `starter`, or org/name[@revision][/file.gguf] on huggingface.co."""
    if as_json:
        _fetch_as_json(source)
        return
    library = _library()
    line = _ProgressLine()
    try:
        model = get_model(source, library, cancel=CancelToken(), on_progress=line.show)
    except KeyboardInterrupt:
        line.end()
        kept = source in library.unfinished()
        click.echo(f"Stopped. {RESUMES if kept else 'Nothing was kept.'}", err=True)
        sys.exit(INTERRUPTED)
    finally:
        line.end()
    click.echo(f"{model.title} is installed: {model.id}")


@models.command("import")
@click.argument("path", type=click.Path(path_type=Path))
def import_model(path: Path) -> None:
    """Use the model folder or GGUF file at PATH where it lies."""
    model = _library().import_path(path)
    click.echo(f"{model.title} is known now as {model.id}; its files stay at {model.path}.")


@models.command()
@click.argument("id")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(id: str, yes: bool) -> None:
    """Delete the model ID, or forget it when it was imported."""
    library = _library()
    if not yes:
        library.check_removable(id)
        click.confirm(f"Remove {id}?", abort=True)
    click.echo(library.remove(id))


def _library() -> ModelLibrary:
    return ModelLibrary(AppPaths.from_environment())


def _fetch_as_json(source: str) -> None:
    """Download in this process and report in JSON lines; the last one says `installed` or `error`."""
    from app.models.fetch import fetch_model

    library = _library()
    pace = Pace(JSON_INTERVAL_S)

    def show(progress: DownloadProgress) -> None:
        if pace.is_due():
            _print_line(
                done_nbytes=progress.done_nbytes, total_nbytes=progress.total_nbytes, file=progress.file
            )

    try:
        path = fetch_model(source, library.paths.models, on_progress=show)
        _print_line(installed=library.find(str(path)).id)
    except OctavoError as error:
        _print_line(error=str(error))
        sys.exit(1)


def _print_line(**values: object) -> None:
    line: DownloadLine = values  # type: ignore[assignment]
    print(json.dumps(line), flush=True)


class _ProgressLine:
    """Progress for people: one line that is written over on a terminal, a line every tenth elsewhere."""

    def __init__(self) -> None:
        self._line = StatusLine()
        self._begin_s = time.monotonic()
        self._begin_nbytes: int | None = None
        self._last_nbytes = 0
        self._pace = Pace(LINE_INTERVAL_S)
        self._shown_percent = -LOG_STEP_PERCENT

    def show(self, progress: DownloadProgress) -> None:
        """Write the progress when there is something new to see."""
        now_s = time.monotonic()
        done, total = progress.done_nbytes, progress.total_nbytes
        if self._begin_nbytes is None or done < self._last_nbytes:  # what is counted now is another thing
            self._begin_s, self._begin_nbytes = now_s, done
        self._last_nbytes = done
        percent = 100 * done // total if total else 0
        if self._line.on_terminal and not self._pace.is_due():
            return
        if not self._line.on_terminal and abs(percent - self._shown_percent) < LOG_STEP_PERCENT:
            return
        self._shown_percent = percent
        speed = round((done - self._begin_nbytes) / max(now_s - self._begin_s, 1e-3))
        of_total = f" of {format_nbytes(total)}" if total else ""
        self._line.write(
            f"{percent:3d} %  {format_nbytes(done)}{of_total}  {format_nbytes(speed)}/s  {progress.file}"
        )

    def end(self) -> None:
        """Leave the line, so that what follows stands below it."""
        self._line.end()
