"""Getting a model in a process of its own, which can be stopped at any moment."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import tempfile
import threading
from typing import IO, TypedDict

from app.command_line import app_command
from app.models.library import InstalledModel, ModelLibrary
from app.models.progress import DownloadProgress, ProgressCallback
from app.models.source import STARTER_ID, HubSource
from app.models.staging import Staging
from engine.cancel import CancelToken
from engine.errors import ModelError

__all__ = ["DownloadProgress", "ProgressCallback", "get_model"]

logger = logging.getLogger(__name__)

POLL_S = 0.05
KILL_WAIT_S = 0.1


class DownloadLine(TypedDict, total=False):
    """One line that `octavo models get --json` prints: progress, then `installed` or `error`."""

    done_nbytes: int
    total_nbytes: int | None
    file: str
    installed: str
    error: str


def get_model(
    source: str, library: ModelLibrary, *, cancel: CancelToken, on_progress: ProgressCallback
) -> InstalledModel:
    """Download a model unless it is installed: `starter`, or `org/name[@revision][/file.gguf]`.

    Runs `octavo models get --json` and kills it on cancel, so `Cancelled` comes within 0.2 s even while a
    server hangs. What has arrived is kept and gone on with at the next call; nothing counts as installed
    before it is whole and checked. Raises a `ModelError` with a sentence for whatever goes wrong.
    """
    id = source.strip()
    if id != STARTER_ID:
        id = HubSource.parse(id).id
    for model in library.installed():
        if model.managed and model.id == id:
            return model
    with tempfile.TemporaryFile() as messages:
        process = _start(id, library, messages)
        try:
            installed = _follow(process, cancel, on_progress)
        except BaseException:
            _kill(process, Staging(library.paths.models, id))
            raise
        process.wait()
        if installed is None:
            messages.seek(0)
            logger.error("Download of %s ended: %s", id, messages.read().decode(errors="replace"))
            raise ModelError(
                f"The download of {id} ended unexpectedly (status {process.returncode}). Try again; what has "
                "arrived is kept."
            )
    return library.find(installed)


def _start(id: str, library: ModelLibrary, messages: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the download, in a process group of its own: it is killed with all that it starts."""
    return subprocess.Popen(
        [*app_command(), "models", "get", id, "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=messages,
        env={**os.environ, "OCTAVO_HOME": str(library.paths.home)},
        start_new_session=True,
    )


def _follow(
    process: subprocess.Popen[bytes], cancel: CancelToken, on_progress: ProgressCallback
) -> str | None:
    """Pass on what the child reports until it ends; return the id that it installed."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    assert process.stdout is not None
    threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True).start()
    installed = None
    while True:
        cancel.check()
        with contextlib.suppress(queue.Empty):
            line = lines.get(timeout=POLL_S)
            if line is None:
                return installed
            report: DownloadLine = json.loads(line)
            if "error" in report:
                raise ModelError(report["error"])
            if "installed" in report:
                installed = report["installed"]
            else:
                on_progress(DownloadProgress(report["done_nbytes"], report["total_nbytes"], report["file"]))


def _read_lines(stream: IO[bytes], lines: queue.SimpleQueue[bytes | None]) -> None:
    """Queue the lines of a stream, then None; the stream ends with its process."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(None)


def _kill(process: subprocess.Popen[bytes], staging: Staging) -> None:
    """End the child and what it started, pip for one, and delete what is of no use to a next try.

    A process that is killed while the system writes for it ends after that, so only a moment is waited here.
    """
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

    def clean_up() -> None:
        process.wait()
        staging.discard_scratch()

    thread = threading.Thread(target=clean_up)
    thread.start()
    thread.join(KILL_WAIT_S)
