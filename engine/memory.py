"""How much memory there is, as the operating system tells it."""

from __future__ import annotations

from pathlib import Path

import psutil

_CGROUP = Path("/sys/fs/cgroup")


def available_nbytes() -> int:
    """Return the bytes that can be taken without swapping, a container's limit considered."""
    available = int(psutil.virtual_memory().available)
    container = _cgroup_headroom_nbytes()
    return available if container is None else min(available, container)


def _cgroup_headroom_nbytes() -> int | None:
    """Return what the control group of this process may still take, None where nothing limits it."""
    limit, used = _read_count(_CGROUP / "memory.max"), _read_count(_CGROUP / "memory.current")
    return None if limit is None or used is None else max(0, limit - used + _idle_cache_nbytes())


def _idle_cache_nbytes() -> int:
    """Return what of a control group's memory is copies of files that the system gives up when asked.

    A model that was just read counts there in full.
    """
    try:
        pairs = (line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return next(int(number) for name, number in pairs if name == "inactive_file")
    except (OSError, ValueError, StopIteration):
        return 0


def _read_count(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # not Linux, not in a group, or the word "max"
        return None
