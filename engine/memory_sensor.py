"""Reads what the operating system and MLX say of memory; a reading takes far less than 5 ms."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
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

    MLX's counters belong to this process and stay 0 for another one, and until the engine has imported MLX.

    Args:
        pid: of the process, None for this one.
    """

    def __init__(self, pid: int | None = None) -> None:
        self._is_other = pid is not None
        self._process = psutil.Process(pid)
        self._written = SwapRate()

    def __call__(self) -> MemoryReading:
        """Return what is so now.

        Raises:
            psutil.Error, OSError: the system does not tell how much memory there is, or the other process
                has ended.
        """
        now_s = time.monotonic()
        memory, swap = psutil.virtual_memory(), psutil.swap_memory()
        pages = memory_macos.page_counts()
        page_nbytes = os.sysconf("SC_PAGE_SIZE")
        # On macOS psutil's `sout` counts files that are written back, too.
        written = int(swap.sout) if pages is None else pages.swapouts * page_nbytes
        group = group_memory(int(memory.total), self._process.pid)
        return MemoryReading(
            time_s=now_s,
            total_nbytes=int(memory.total),
            available_nbytes=int(memory.available),
            swap_nbytes=int(swap.used),
            swap_rate=self._written.after(now_s, written),
            process_nbytes=self._process_nbytes(),
            stalled=_stalled(group),
            compressed_nbytes=None if pages is None else pages.compressor * page_nbytes,
            system_level=SYSTEM_LEVELS.get(memory_macos.pressure_level() or 0),
            group=group,
            mlx=MlxBytes() if self._is_other else read_mlx(),
        )

    def _process_nbytes(self) -> int:
        own = memory_linux.own_nbytes if sys.platform == "linux" else memory_macos.footprint_nbytes
        nbytes = own(self._process.pid)
        if nbytes is not None and self._process.is_running():  # else the number may be another process's now
            return nbytes
        told = self._process.memory_info()
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
