"""Files that survive a crash: written whole or not at all, and never thrown away when they are damaged."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from datetime import datetime
from pathlib import Path

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers of a disk, quota or file that takes no more."""
NO_ACCESS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Error numbers of a file or folder that the user may not read or write."""


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` under a temporary name and put it in the place of `path`, which may be a link."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", suffix=".new", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` last, where the file system can do that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def dated_name(path: Path, label: str) -> Path:
    """Return an unused name in the same folder: `path`'s own, `label` and today's date and time."""
    stem = f"{path.name}.{label}-{datetime.now():%Y-%m-%d-%H%M%S}"
    candidate = path.with_name(stem)
    number = 2
    while os.path.lexists(candidate):
        candidate = path.with_name(f"{stem}-{number}")
        number += 1
    return candidate


def set_aside(path: Path) -> Path:
    """Rename a damaged file or folder to a dated name beside it and return that name."""
    aside = dated_name(path, "damaged")
    path.rename(aside)
    sync_folder(aside.parent)
    return aside
