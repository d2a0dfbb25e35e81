"""A file opened for reading, after everything that can be wrong with a path was ruled out."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from app.documents.document import DocumentError
from app.valid_unicode import valid_unicode

HEAD_NBYTES = 65_536
_MAX_NAME_CHARS = 80


@dataclass(frozen=True)
class Source:
    """An open file.

    Attributes:
        path: where it lies.
        name: its name in typographic quotes, for messages.
        file: open for reading, at the start.
        nbytes: its size when it was opened.
        modified_ns: when it had been changed last.
        head: its first `HEAD_NBYTES` bytes.
    """

    path: Path
    name: str
    file: BinaryIO
    nbytes: int
    modified_ns: int
    head: bytes

    @property
    def suffix(self) -> str:
        """The ending of the name in lower case, such as `.pdf`."""
        return self.path.suffix.lower()

    def read(self, limit: int) -> bytes:
        """Return the content, `limit` bytes at most: a file may grow, and some say nothing of their size."""
        self.file.seek(0)
        return self.file.read(limit)

    def has_changed(self) -> bool:
        """Return whether the file was written to or cut since it was opened."""
        status = os.fstat(self.file.fileno())
        return (status.st_size, status.st_mtime_ns) != (self.nbytes, self.modified_ns)

    def has_grown(self) -> bool:
        """Return whether the file is longer than when it was opened, as one that is being written."""
        return os.fstat(self.file.fileno()).st_size > self.nbytes


@contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open the regular, non-empty file at `path`; raise `DocumentError` for anything else, never block."""
    name = quoted_name(path)
    try:
        _check_regular(path.stat(), name)
        # A pipe that took the file's place since then must not block the opening.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _cannot_open(error, name) from error
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        status = os.fstat(descriptor)
        _check_regular(status, name)
        try:
            head = file.read(HEAD_NBYTES)
        except OSError as error:
            raise cannot_read(error, name) from error
        if not head:
            raise DocumentError(f"{name} is empty: it holds 0 bytes. Choose a file with text in it.")
        file.seek(0)
        yield Source(path, name, file, status.st_size, status.st_mtime_ns, head)


def quoted_name(path: Path) -> str:
    """Return the file's name in quotes, fit for a message: printable, and shortened in the middle."""
    name = re.sub(
        r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "�", valid_unicode(path.name or str(path))
    )
    if len(name) > _MAX_NAME_CHARS:
        half = _MAX_NAME_CHARS // 2
        name = f"{name[:half]}…{name[-half + 1 :]}"
    return f"“{name}”"


def _check_regular(status: os.stat_result, name: str) -> None:
    """Raise unless `status` is that of a regular file."""
    mode = status.st_mode
    if stat.S_ISDIR(mode):
        raise DocumentError(f"{name} is a folder. Choose the files inside it.")
    if not stat.S_ISREG(mode):
        raise DocumentError(f"{name} is a pipe, a socket or a device and not a file that can be read.")


def _cannot_open(error: OSError | ValueError, name: str) -> DocumentError:
    """Say why the operating system does not open the file."""
    number = error.errno if isinstance(error, OSError) else errno.ENOENT
    if number in (errno.ENOENT, errno.ENOTDIR):
        return DocumentError(f"{name} was not found. It may have been moved, renamed or deleted.")
    if number in (errno.EACCES, errno.EPERM):
        return DocumentError(
            f"{name} may not be opened: you have no permission to read it. "
            "Change its permissions, or ask its owner for a copy."
        )
    if number == errno.ELOOP:
        return DocumentError(
            f"{name} is a link that leads back to itself. Choose the file it should lead to."
        )
    if number == errno.ENAMETOOLONG:
        return DocumentError(
            f"{name} cannot be opened: its name is too long. Choose a file with a shorter name."
        )
    return cannot_read(error, name)


def cannot_read(error: OSError | ValueError, name: str) -> DocumentError:
    """Say that the operating system does not give the file's content."""
    number = error.errno if isinstance(error, OSError) else None
    reason = os.strerror(number) if number else str(error)
    return DocumentError(
        f"{name} could not be read ({reason}). "
        "Check the disk or the network drive that it lies on and try again."
    )


def changed_while_read(name: str) -> DocumentError:
    """Say that what was read is not what there is now."""
    return DocumentError(
        f"{name} was changed while it was read. Wait until it has been saved, and choose it again."
    )
