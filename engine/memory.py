"""How much memory there is, as the operating system tells it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.figures import EngineFigures

_CGROUP = Path("/sys/fs/cgroup")


class PressureLevel(enum.IntEnum):
    """How short memory is."""

    NORMAL = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True)
class MemorySample:
    """Memory at one moment; sizes in bytes.

    Attributes:
        time_s: when, by `time.monotonic`.
        total_nbytes: of the computer, or of the control group where that has less.
        available_nbytes: what can be taken without swapping.
        swap_nbytes: swap in use, of the whole system.
        swap_rate: bytes a second by which the system writes to swap, averaged over a few seconds; 0 without.
        stalled: the share of time in which something waited for memory (Linux PSI, 10 s), None where unknown.
        compressed_nbytes: held by the system's compressor (macOS), None elsewhere.
        process_nbytes: the memory that is this process's own (on macOS the physical footprint).
        active_nbytes: MLX's arrays.
        cache_nbytes: MLX's free buffers.
        peak_nbytes: the most that MLX's arrays took since the last reply began.
        engine: what the engine says of itself.
        level: how short memory is.
        reason: that in words, for people; says what is fine where nothing is short.
    """

    time_s: float
    total_nbytes: int
    available_nbytes: int
    swap_nbytes: int
    swap_rate: float
    stalled: float | None
    compressed_nbytes: int | None
    process_nbytes: int
    active_nbytes: int
    cache_nbytes: int
    peak_nbytes: int
    engine: EngineFigures
    level: PressureLevel
    reason: str


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
