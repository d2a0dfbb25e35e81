"""A file's text, read in a child process.

It can be stopped at any moment, and a parser that dies takes nothing with it.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from pathlib import Path

from app.child_process import ChildProcess
from app.command_line import app_command
from app.documents.containment import EXIT_OUT_OF_MEMORY
from app.documents.document import Document, DocumentError
from app.documents.extracted import OnProgress
from app.documents.limits import OPEN_LIMIT_S, TIME_LIMIT_S
from app.documents.protocol import DocumentReceiver
from app.documents.source import quoted_name
from engine.cancel import CancelToken

_EXIT_WAIT_S = 5

_log = logging.getLogger(__name__)


def extract(
    path: Path,
    *,
    encoding: str | None = None,
    cancel: CancelToken | None = None,
    on_progress: OnProgress | None = None,
) -> Document:
    """Return the text of the file at `path`.

    `encoding` is the user's choice for a file that is text, any that Python
    knows. `on_progress` is called with the parts done and all parts. Raises `DocumentError` when the file
    cannot be read and `Cancelled` within 0.3 s when `cancel` is.
    """
    cancel = cancel or CancelToken()
    cancel.check()
    receiver = DocumentReceiver(on_progress)
    with _start(path, encoding) as child:
        for data in _output(child, cancel, path):
            receiver.feed(data)
            if receiver.document is not None:
                return receiver.document
        status = child.wait(_EXIT_WAIT_S)
    raise _broken_off(status, child.errors, path)


def _start(path: Path, encoding: str | None) -> ChildProcess:
    """Start the reader."""
    options = ["--encoding", encoding] if encoding is not None else []
    try:
        return ChildProcess(
            [*app_command(), "extract", "--json", *options, "--", str(path.absolute())],
        )
    except (OSError, ValueError) as error:
        raise DocumentError(
            f"{quoted_name(path)} could not be read: the reader did not start ({error})."
        ) from error


def _output(child: ChildProcess, cancel: CancelToken, path: Path) -> Iterator[bytes]:
    """Yield what the reader writes; raise `DocumentError` when the file does not open or takes too long."""
    try:
        yield next(child.output(cancel, OPEN_LIMIT_S), b"")
    except TimeoutError:
        raise _no_answer(path) from None
    try:
        yield from child.output(cancel, TIME_LIMIT_S)
    except TimeoutError:
        raise _too_slow(path) from None


def _broken_off(status: int | None, errors: str, path: Path) -> DocumentError:
    """Say why the process ended without a document."""
    _log.warning("reading %s ended with status %s: %s", path, status, errors)
    name = quoted_name(path)
    if status == -signal.SIGXCPU:
        return _too_slow(path)
    if status == EXIT_OUT_OF_MEMORY:
        return DocumentError(
            f"{name} needs more memory to read than is allowed. Split it into smaller files."
        )
    if status is not None and status > 0:
        return DocumentError(f"{name} could not be read: the reader failed. The log says how.")
    return DocumentError(
        f"{name} could not be read: the file seems to be damaged. "
        "Get another copy, or open it in its own program and save it again."
    )


def _no_answer(path: Path) -> DocumentError:
    """Say that the file does not open."""
    return DocumentError(
        f"{quoted_name(path)} could not be opened within {OPEN_LIMIT_S} seconds. "
        "Check the disk or the network drive that it lies on and try again."
    )


def _too_slow(path: Path) -> DocumentError:
    """Say that reading was given up."""
    return DocumentError(
        f"{quoted_name(path)} could not be read within {TIME_LIMIT_S // 60} minutes. "
        "Split it into smaller files."
    )
