"""Getting a model in a process of its own, which can be stopped at any moment."""

from __future__ import annotations

import logging
import threading
from typing import TypedDict

from app.child_process import ChildProcess, JsonLines
from app.command_line import app_command
from app.models.library import InstalledModel, ModelLibrary
from app.models.progress import DownloadProgress, ProgressCallback
from app.models.source import STARTER_ID, HubSource
from app.models.staging import Staging
from engine.cancel import CancelToken
from engine.errors import ModelError

logger = logging.getLogger(__name__)

EXIT_WAIT_S = 5
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
    child = ChildProcess(
        [*app_command(), "models", "get", id, "--json"], {"OCTAVO_HOME": str(library.paths.home)}
    )
    try:
        installed = _follow(child, cancel, on_progress)
        status = child.wait(EXIT_WAIT_S)
    except BaseException:
        _kill(child, Staging(library.paths.models, id))
        raise
    child.close()
    if installed is None:
        logger.error("Download of %s ended: %s", id, child.errors)
        raise ModelError(
            f"The download of {id} ended unexpectedly (status {status}). Try again; what has arrived is kept."
        )
    return library.find(installed)


def _follow(child: ChildProcess, cancel: CancelToken, on_progress: ProgressCallback) -> str | None:
    """Pass on what the child reports until it ends; return the id that it installed."""
    lines = JsonLines()
    installed = None
    for data in child.output(cancel):
        for line in lines.feed(data):
            report: DownloadLine = line  # type: ignore[assignment]
            if "error" in report:
                raise ModelError(report["error"])
            if "installed" in report:
                installed = report["installed"]
            else:
                on_progress(DownloadProgress(report["done_nbytes"], report["total_nbytes"], report["file"]))
    return installed


def _kill(child: ChildProcess, staging: Staging) -> None:
    """End the child and what it started, pip for one, and delete what is of no use to a next try.

    A process that is killed while the system writes for it ends after that, so only a moment is waited here.
    """
    child.kill()

    def clean_up() -> None:
        child.close()
        staging.discard_scratch()

    thread = threading.Thread(target=clean_up)
    thread.start()
    thread.join(KILL_WAIT_S)
