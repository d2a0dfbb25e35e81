"""Reads what the operating system and MLX say of memory; a reading takes far less than 5 ms."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import psutil

from engine import memory_linux, memory_macos
from engine.control_group import GroupMemory, group_memory
from engine.memory import MemoryReading, MlxBytes, PressureLevel

RATE_WINDOW_S = 5.0
"""Seconds over which the rate of swapping is averaged: the system writes in bursts."""
SYSTEM_LEVELS = {1: PressureLevel.NORMAL, 2: PressureLevel.WARNING, 4: PressureLevel.CRITICAL}
"""The levels that macOS knows."""


class MemorySensor:
    """Reads the system's memory and that of one process.

    Args:
        watched: returns the process's number, None where there is none now. MLX's counters are those of this
            process, 0 where another is watched.
    """

    def __init__(self, watched: Callable[[], int | None] = os.getpid) -> None:
        self._watched = watched
        self._written = SwapRate()

    def __call__(self) -> MemoryReading:
        """Return what is so now.

        Raises:
            psutil.Error, OSError: the system does not tell how much memory there is.
        """
        now_s, pid = time.monotonic(), self._watched()
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        pages = memory_macos.page_counts()
        page_nbytes = os.sysconf("SC_PAGE_SIZE")
        # On macOS psutil's `sout` counts files that are written back, too.
        written = int(swap.sout) if pages is None else pages.swapouts * page_nbytes
        group = group_memory(int(memory.total), pid)
        return MemoryReading(
            time_s=now_s,
            total_nbytes=int(memory.total),
            available_nbytes=int(memory.available),
            swap_nbytes=int(swap.used),
            swap_rate=self._written.after(now_s, written),
            process_nbytes=0 if pid is None else process_nbytes(pid),
            stalled=_stalled(group),
            compressed_nbytes=None if pages is None else pages.compressor * page_nbytes,
            system_level=SYSTEM_LEVELS.get(memory_macos.pressure_level() or 0),
            group=group,
            mlx=read_mlx() if pid == os.getpid() else MlxBytes(),
        )


def process_nbytes(pid: int) -> int:
    """Return the memory that is a process's own, 0 where it has ended."""
    own = memory_linux.own_nbytes if sys.platform == "linux" else memory_macos.footprint_nbytes
    nbytes = own(pid)
    if nbytes is not None:
        return nbytes
    try:
        told = psutil.Process(pid).memory_info()
    except psutil.Error:
        return 0
    return int(told.rss) - int(getattr(told, "shared", 0))


class SwapRate:
    """How fast a counter of bytes grows, averaged over `RATE_WINDOW_S`."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, time_s: float, counter: int) -> float:
        """Return bytes a second, with the counter's newest value; a counter that begins again begins at 0."""
        seen = self._seen
        if seen and counter < seen[-1][1]:
            seen.clear()
        seen.append((time_s, counter))
        while len(seen) > 2 and time_s - seen[1][0] >= RATE_WINDOW_S:
            seen.popleft()
        first_s, first = seen[0]
        return (counter - first) / max(time_s - first_s, RATE_WINDOW_S)


def read_mlx() -> MlxBytes:
    """Return MLX's counters, 0 where this process has not imported it; any thread may ask.

    Importing it here would come before the backend is prepared.
    """
    mx: Any = sys.modules.get("mlx.core")
    if mx is None or not hasattr(mx, "get_peak_memory"):  # still being imported
        return MlxBytes()
    return MlxBytes(int(mx.get_active_memory()), int(mx.get_cache_memory()), int(mx.get_peak_memory()))


def _stalled(group: GroupMemory | None) -> float | None:
    """Return the stalls of the group where it is limited: those of others would be blamed on it."""
    inside = None if group is None else memory_linux.stalled_share(group.folder / "memory.pressure")
    return memory_linux.stalled_share() if inside is None else inside
