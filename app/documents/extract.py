"""A file's text, read in a child process.

It can be stopped at any moment, and a parser that dies takes nothing with it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from app.command_line import app_command
from app.documents.containment import EXIT_OUT_OF_MEMORY
from app.documents.document import Document, DocumentError
from app.documents.encodings import ENCODINGS, encoding_label
from app.documents.extracted import OnProgress
from app.documents.formats import SUFFIXES, file_filter
from app.documents.limits import TIME_LIMIT_S
from app.documents.protocol import DocumentReceiver
from app.documents.source import quoted_name
from engine.cancel import CancelToken

__all__ = ["ENCODINGS", "SUFFIXES", "encoding_label", "extract", "file_filter"]

_POLL_S = 0.05
_EXIT_WAIT_S = 5
_READ_NBYTES = 1 << 18
_KEPT_LOG_NBYTES = 8192

_log = logging.getLogger(__name__)


def extract(
    path: Path,
    *,
    encoding: str | None = None,
    cancel: CancelToken | None = None,
    on_progress: OnProgress | None = None,
) -> Document:
    """Return the text of the file at `path`.

    `encoding` is the user's choice for a file that is text, one of `ENCODINGS` or any other that Python
    knows. `on_progress` is called with the parts done and all parts. Raises `DocumentError` when the file
    cannot be read and `Cancelled` within 0.3 s when `cancel` is.
    """
    cancel = cancel or CancelToken()
    cancel.check()
    receiver = DocumentReceiver(on_progress)
    with _started(path, encoding) as process:
        errors = _receive(process, receiver, cancel, path)
        if receiver.document is not None:
            return receiver.document
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_WAIT_S)
    raise _broken_off(process.returncode, errors, path)


@contextlib.contextmanager
def _started(path: Path, encoding: str | None) -> Iterator[subprocess.Popen[bytes]]:
    """Run the reader in a process group of its own and end it, whatever happens."""
    options = ["--encoding", encoding] if encoding is not None else []
    command = [*app_command(), "extract", "--json", *options, "--", str(path.absolute())]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise DocumentError(
            f"{quoted_name(path)} could not be read: the reader did not start ({error})."
        ) from error
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                # macOS says PermissionError of a group whose process has just ended.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)


def _receive(
    process: subprocess.Popen[bytes], receiver: DocumentReceiver, cancel: CancelToken, path: Path
) -> bytes:
    """Feed the process's output to `receiver` until it ends; return the end of its error output."""
    deadline = time.monotonic() + TIME_LIMIT_S
    errors = b""
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and receiver.document is None:
            cancel.check()
            if time.monotonic() > deadline:
                raise _too_slow(path)
            for key, _ in selector.select(_POLL_S):
                data = os.read(key.fd, _READ_NBYTES)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    receiver.feed(data)
                else:
                    errors = (errors + data)[-_KEPT_LOG_NBYTES:]
    return errors


def _broken_off(status: int | None, errors: bytes, path: Path) -> DocumentError:
    """Say why the process ended without a document."""
    _log.warning("reading %s ended with status %s: %s", path, status, errors.decode("utf-8", "replace"))
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


def _too_slow(path: Path) -> DocumentError:
    """Say that reading was given up."""
    return DocumentError(
        f"{quoted_name(path)} could not be read within {TIME_LIMIT_S // 60} minutes. "
        "Split it into smaller files."
    )
