"""The keys and values of idle sequences in a temporary folder, while memory is needed for something else."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import filelock

from engine.errors import Cancelled
from engine.kv.blob import Blob, DamagedBlobError
from engine.kv.moving import MovableCache
from engine.wording import format_nbytes

log = logging.getLogger(__name__)

KEEP_FREE_NBYTES = 256 * 1024**2
"""Room on the disk that is left to other programs, and to the conversations themselves."""
CLAIM_TIMEOUT_S = 5
"""Another process holds the folder for an instant only."""
LOCK_NAME = "lock"
DIGEST_NBYTES = 16
"""The end of a blob is of its checksum. It is remembered, so that a file of elsewhere is not taken."""


@dataclass(frozen=True)
class SpilledSequence:
    """Where a sequence's blobs lie: one file, and the start, the length and the end of each blob in it."""

    path: Path
    blobs: tuple[tuple[int, int, bytes], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the blobs."""
        return sum(nbytes for _, nbytes, _ in self.blobs)

    def part(self, numbers: Sequence[int]) -> SpilledSequence:
        """Return where some of the blobs lie."""
        return SpilledSequence(self.path, tuple(self.blobs[number] for number in numbers))


class SpillFolder:
    """Files of one process in a folder that processes share.

    Each process has a folder of its own in it and holds a lock there. What a killed one left is removed by
    the next that starts. Nothing here is meant to outlive its process.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()
        self._own: Path | None = None
        self._own_lock: filelock.BaseFileLock | None = None
        try:
            self._remove_leftovers()
        except (OSError, filelock.Timeout) as error:
            log.warning("The folder %s could not be tidied: %s", root, error)

    def spill(self, cache: MovableCache, check: Callable[[], None] = lambda: None) -> SpilledSequence:
        """Write a sequence to a file and give its memory back.

        `check` is called before a page is written and may raise `Cancelled`: it stays in memory then.

        Raises:
            OSError: the disk takes no more, or the folder cannot be written. Nothing of it stays on the disk.
        """
        self._require_room(cache.referred_nbytes)
        path = self._folder() / f"{next(self._numbers)}.pages"
        blobs: list[tuple[int, int, bytes]] = []
        try:
            with path.open("xb") as file:

                def write(blob: Blob) -> None:
                    check()
                    start = file.tell()
                    file.write(blob)
                    file.flush()  # a disk that is full must be noticed while the sequence is still whole
                    blobs.append((start, len(blob), bytes(blob[-DIGEST_NBYTES:])))

                cache.move_out(write)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return SpilledSequence(path, tuple(blobs))

    def restore(
        self, spilled: SpilledSequence, cache: MovableCache, check: Callable[[], None] = lambda: None
    ) -> None:
        """Give a sequence its keys and values back, page by page, and remove the file.

        `check` is called before a page is read and may raise `Cancelled`: all stays on the disk then.

        Raises:
            OSError: the file is gone or cannot be read.
            BlobError: it is not what was written.
        """
        try:
            self.read(spilled, cache, check)
        except Cancelled:
            raise
        except BaseException:
            self.discard(spilled)
            raise
        self.discard(spilled)

    def read(
        self, spilled: SpilledSequence, cache: MovableCache, check: Callable[[], None] = lambda: None
    ) -> None:
        """Do the same and leave the file where it is in any case."""
        cache.move_in(_read_blobs(spilled, check))

    def discard(self, spilled: SpilledSequence) -> None:
        """Remove a file that is no longer needed."""
        with contextlib.suppress(OSError):
            spilled.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove this process's files."""
        if self._own is not None and self._own_lock is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own_lock.release()
            self._own = self._own_lock = None

    def _folder(self) -> Path:
        """Return this process's folder, made with its first file."""
        if self._own is None:
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                with self._claimed():
                    own = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self._root))
                    self._own_lock = filelock.FileLock(own / LOCK_NAME, timeout=0)
                    self._own_lock.acquire()
                    self._own = own
            except filelock.Timeout as error:
                raise OSError(errno.EBUSY, str(error)) from error
        return self._own

    def _require_room(self, nbytes: int) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(self._root).free
        if free - nbytes < KEEP_FREE_NBYTES:
            raise OSError(errno.ENOSPC, f"The disk has only {format_nbytes(free)} free")

    def _remove_leftovers(self) -> None:
        """Remove the folders of processes that are no more."""
        if not self._root.is_dir():
            return
        with self._claimed():
            for folder in filter(Path.is_dir, self._root.iterdir()):
                lock = filelock.FileLock(folder / LOCK_NAME, timeout=0)
                with contextlib.suppress(filelock.Timeout), lock:
                    shutil.rmtree(folder, ignore_errors=True)

    def _claimed(self) -> filelock.BaseFileLock:
        """Return a lock that is held while folders are made or removed, so that a new one has its lock."""
        return filelock.FileLock(self._root / LOCK_NAME, timeout=CLAIM_TIMEOUT_S)


def _read_blobs(spilled: SpilledSequence, check: Callable[[], None]) -> Iterator[Blob]:
    with spilled.path.open("rb") as file:
        for start, nbytes, end in spilled.blobs:
            check()
            file.seek(start)
            blob = file.read(nbytes)
            if blob[-DIGEST_NBYTES:] != end:
                raise DamagedBlobError("it is not what was written here")
            yield blob
