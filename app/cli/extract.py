"""`octavo extract`: the text of a document."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from app.cli.pace import Pace
from app.documents.containment import contain_this_process
from app.documents.document import DocumentError
from app.documents.extract import extract as read_in_child
from app.documents.protocol import document_lines, error_line, opened_line, progress_line
from app.documents.reader import read_document

_PROGRESS_INTERVAL_S = 0.05


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--encoding", help="Read a text file in this encoding, such as windows-1251, without guessing.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line: progress, text, document or error."
)
def extract(file: Path, encoding: str | None, as_json: bool) -> None:
    """Print the text of FILE: PDF, DOCX, EPUB, HTML, Markdown, text or code.

    With --json the lines are objects whose "type" is "opened", "progress" (with "done" and "total"), "text"
    (a piece of it in "text") and at last "document" (title, kind, pages, encoding) or "error" (a sentence in
    "message"). The exit status is 1 when FILE cannot be read.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.INFO if as_json else logging.ERROR)
    if as_json:
        _extract_here(file, encoding)
    else:
        _write([read_in_child(file, encoding=encoding).text.encode(), b"\n"])


def _extract_here(file: Path, encoding: str | None) -> None:
    """Read a file in this process, which may end of it, and write lines for the one that started it."""
    contain_this_process()
    try:
        document = read_document(
            file, encoding=encoding, on_open=lambda: _write([opened_line()]), on_progress=_reporter()
        )
    except DocumentError as error:
        _write([error_line(error)])
        sys.exit(1)
    _write(document_lines(document))


def _reporter() -> Callable[[int, int], None]:
    """Return what writes progress."""
    pace = Pace(_PROGRESS_INTERVAL_S)

    def report(done: int, total: int) -> None:
        if pace.is_due() or done == total:
            _write([progress_line(done, total)])

    return report


def _write(lines: Iterable[bytes]) -> None:
    """Write to standard output, as UTF-8 whatever the terminal's settings are."""
    for line in lines:
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
