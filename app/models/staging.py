"""The folder in which a download gathers until it is complete."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import filelock

from app.durable_files import FULL_DISK, NO_ACCESS
from engine.errors import ModelError
from engine.wording import format_nbytes

STAGING_NAME = ".staging"
SPARE_NBYTES = 64 * 1024 * 1024
"""Left free on the disk beside what a download needs."""

CLAIM_TIMEOUT_S = 1.0
"""How long a process that was killed may take to let go of its files."""

_REMOVED = ".removed-"


class Staging:
    """What one download has gathered so far, in a folder that never counts as a model.

    Attributes:
        folder: files that are complete and beginnings of files, kept from one try to the next.
        scratch: files that are of no use to the next try, deleted when this one ends.
    """

    def __init__(self, models: Path, name: str) -> None:
        self._models = models
        self._name = name
        self.folder = models / STAGING_NAME / name.replace("/", "--")
        self.scratch = self.folder / "scratch"
        self._lock_file = self.folder.with_name(f"{self.folder.name}.lock")

    @contextlib.contextmanager
    def claim(self) -> Iterator[None]:
        """Keep other processes out; a `ModelError` says when one is in, or that the disk fails."""
        with disk_errors(self._models):
            self._lock_file.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock = filelock.FileLock(self._lock_file, timeout=CLAIM_TIMEOUT_S)
                lock.acquire()
            except filelock.Timeout:
                raise ModelError(
                    f"Another Octavo is already downloading {self._name}; wait for it or stop it there."
                ) from None
            try:
                shutil.rmtree(self.scratch, ignore_errors=True)
                self.folder.mkdir(exist_ok=True)
                yield
            finally:
                shutil.rmtree(self.scratch, ignore_errors=True)
                lock.release()

    def require_space(self, nbytes: int) -> None:
        """Raise a `ModelError` with the numbers when the disk has no room for `nbytes` more."""
        free = shutil.disk_usage(self.folder).free
        missing = nbytes + SPARE_NBYTES - free
        if nbytes and missing > 0:
            raise ModelError(
                f"{self._name} needs {format_nbytes(nbytes)} more on the disk of {self._models}, and "
                f"{format_nbytes(free)} are free. Free at least {format_nbytes(missing)} and try again."
            )

    def discard(self) -> None:
        """Delete everything that was gathered."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def discard_scratch(self) -> None:
        """Delete what a killed download left that the next try cannot use; nothing while one is running."""
        with contextlib.suppress(ModelError), self.claim():
            pass


def unfinished_ids(models: Path) -> list[str]:
    """Return the names of the downloads of which something is kept."""
    folder = models / STAGING_NAME
    begun = [path.name for path in folder.iterdir() if _holds_files(path)] if folder.is_dir() else []
    return sorted(name.replace("--", "/") for name in begun if not name.startswith(_REMOVED))


def discard(models: Path, path: Path) -> None:
    """Delete a file or folder: moved away at once, then deleted, with what an interrupted call left."""
    staging = models / STAGING_NAME
    staging.mkdir(parents=True, exist_ok=True)
    path.replace(Path(tempfile.mkdtemp(prefix=_REMOVED, dir=staging)) / path.name)
    for removed in staging.glob(f"{_REMOVED}*"):
        shutil.rmtree(removed)


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_file() for path in folder.rglob("*"))


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turn a full disk or a folder that cannot be written into a `ModelError`."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            raise ModelError(
                f"The disk of {folder} is full. Nothing was installed; free some space and try again."
            ) from error
        if error.errno in NO_ACCESS:
            raise ModelError(f"Octavo may not write to {folder}: check the permissions.") from error
        if isinstance(error, NotADirectoryError | FileExistsError):
            raise ModelError(f"{folder} cannot be a folder: a file lies where it should be.") from error
        raise
