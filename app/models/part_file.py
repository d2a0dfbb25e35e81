"""A file that is not complete yet: written under another name, checked, then moved into place."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Protocol, Self

from engine.errors import ModelError

READ_NBYTES = 1 << 20


class Digest(Protocol):
    """A running checksum, as hashlib makes them."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes in."""

    def hexdigest(self) -> str:
        """Return the checksum so far."""


@dataclass(frozen=True)
class Checksum:
    """What a file must be: its size and its SHA-256, or the SHA-1 that Git gives a blob."""

    nbytes: int
    hexdigest: str
    git_blob: bool = False

    def start(self) -> Digest:
        """Return a running checksum that has seen nothing of the file."""
        if self.git_blob:
            return hashlib.sha1(f"blob {self.nbytes}\0".encode(), usedforsecurity=False)
        return hashlib.sha256()

    def matches(self, path: Path, on_bytes: Callable[[int], None]) -> bool:
        """Return whether a file is the one meant; `on_bytes` gets the bytes read so far."""
        if not path.is_file() or path.stat().st_size != self.nbytes:
            return False
        digest = self.start()
        _digest_file(path, digest, on_bytes)
        return digest.hexdigest() == self.hexdigest


class PartFile:
    """The beginning of a file beside its place, with a running checksum; a context manager.

    What an earlier try left is kept and gone on from, unless the expected content has changed since.

    Attributes:
        target: where the complete file goes.
        checksum: what it must be.
        nbytes: bytes written so far.
    """

    def __init__(self, target: Path, checksum: Checksum, on_bytes: Callable[[int], None]) -> None:
        self.target = target
        self.checksum = checksum
        self._on_bytes = on_bytes
        target.parent.mkdir(parents=True, exist_ok=True)
        self._path = target.with_name(f"{target.name}.{checksum.hexdigest[:12]}.part")
        self._file = self._path.open("ab")
        self._digest = checksum.start()
        self.nbytes = _digest_file(self._path, self._digest, on_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, data: bytes) -> None:
        """Write what comes next; more than the whole file raises a `ModelError`."""
        if self.nbytes + len(data) > self.checksum.nbytes:
            self._reject()
        self._file.write(data)
        self._digest.update(data)
        self.nbytes += len(data)
        self._on_bytes(self.nbytes)

    def read_start(self, nbytes: int) -> bytes:
        """Return the first bytes that were written."""
        self._file.flush()
        with self._path.open("rb") as file:
            return file.read(nbytes)

    def restart(self) -> None:
        """Forget what was written."""
        self._file.truncate(0)
        self._digest = self.checksum.start()
        self.nbytes = 0

    def finish(self) -> None:
        """Check the file and move it into place; a wrong one is deleted and raises a `ModelError`."""
        self._file.flush()
        if self.nbytes != self.checksum.nbytes or self._digest.hexdigest() != self.checksum.hexdigest:
            self._reject()
        os.fsync(self._file.fileno())
        self._path.replace(self.target)

    def _reject(self) -> NoReturn:
        self._path.unlink()
        raise ModelError(
            f"{self.target.name} arrived damaged: its checksum is not the one that was announced. "
            "It was deleted and nothing was installed; try again."
        )


def _digest_file(path: Path, digest: Digest, on_bytes: Callable[[int], None]) -> int:
    """Take a file into a running checksum and return its size."""
    nbytes = 0
    with path.open("rb") as file:
        while chunk := file.read(READ_NBYTES):
            digest.update(chunk)
            nbytes += len(chunk)
            on_bytes(nbytes)
    return nbytes
