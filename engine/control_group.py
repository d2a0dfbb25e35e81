"""What the control group of a process may take: how containers and services are limited on Linux."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MOUNT = Path("/sys/fs/cgroup")
PROC = Path("/proc")


@dataclass(frozen=True)
class _Files:
    """How a version of control groups names its files.

    Attributes:
        folder: of the memory controller, below the mount.
        limits: bytes that a group may take; above `memory.high` nothing is killed, and all but stands still.
        used: bytes that it takes.
        copies: the lines of `memory.stat` with copies of files, those that were used lately as well: the
            system takes them back before it kills.
    """

    folder: str
    limits: tuple[str, ...]
    used: str
    copies: tuple[str, ...]


_V2 = _Files("", ("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file"))
_V2_BESIDE_V1 = dataclasses.replace(_V2, folder="unified")
_V1 = _Files(
    "memory",
    ("memory.limit_in_bytes",),
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)


@dataclass(frozen=True)
class GroupMemory:
    """The memory of a control group that is limited.

    Attributes:
        limit_nbytes: what its processes together may take before they are slowed down or one is killed.
        used_nbytes: what they take, without copies of files: a model that was just read would count in full.
        folder: where the group's files are.
    """

    limit_nbytes: int
    used_nbytes: int
    folder: Path

    @property
    def free_nbytes(self) -> int:
        """What may still be taken."""
        return max(0, self.limit_nbytes - self.used_nbytes)


def group_memory(
    most_nbytes: int, pid: int | None = None, mount: Path = MOUNT, proc: Path = PROC
) -> GroupMemory | None:
    """Return the tightest of the control groups that a process is in, None where none limits it.

    Args:
        most_nbytes: the memory of the computer; a limit above is none (version 1 writes a huge number).
        pid: of the process, None for this one.
        mount: where control groups are mounted.
        proc: where processes are told of.
    """
    groups = [
        group
        for files, path in _memberships(proc / str(pid or "self") / "cgroup")
        for folder in _upwards(mount / files.folder, path)
        if (group := _limited(folder, files, most_nbytes)) is not None
    ]
    return min(groups, key=lambda group: group.free_nbytes, default=None)


def _memberships(file: Path) -> list[tuple[_Files, str]]:
    """Return the groups that a process's file names, as `0::/path` (version 2) or `4:memory:/path`."""
    try:
        lines = [line.split(":", 2) for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):  # not Linux, or a process that has ended
        return []
    found = []
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if not controllers:
            found += [(_V2, path), (_V2_BESIDE_V1, path)]
        elif "memory" in controllers.split(","):
            found.append((_V1, path))
    return found


def _upwards(root: Path, path: str) -> list[Path]:
    """Return a group's folder and those of the groups around it.

    In a container the path may be the host's, of which only the end is mounted, as the root.
    """
    inside = PurePosixPath(path.lstrip("/"))
    if ".." in inside.parts:  # a group outside of what this container sees
        return [root]
    return [root / inside, *(root / parent for parent in inside.parents if parent != inside)]


def _limited(folder: Path, files: _Files, most_nbytes: int) -> GroupMemory | None:
    limits = [limit for name in files.limits if (limit := _read_count(folder / name)) is not None]
    used, limit = _read_count(folder / files.used), min(limits, default=most_nbytes)
    if used is None or limit >= most_nbytes:
        return None
    return GroupMemory(limit, max(0, used - _copied_nbytes(folder / "memory.stat", files.copies)), folder)


def _copied_nbytes(file: Path, names: tuple[str, ...]) -> int:
    """Return the sum of some lines of a group's statistics, 0 where they cannot be read."""
    try:
        pairs = (line.split() for line in file.read_text().splitlines())
        return sum(int(number) for name, number in pairs if name in names)
    except (OSError, ValueError):
        return 0


def _read_count(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # no such group or version, or the word "max"
        return None
