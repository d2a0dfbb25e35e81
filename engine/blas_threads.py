"""How many threads OpenBLAS may use at the moment.

Its threads wait for each other by spinning. With a core for each that is right; where another process takes
one of the cores, every product waits for the scheduler: 22 ms in place of 0.03 ms were measured, and whole
answers fifteen times slower than with a single thread. So the count follows what other programs leave.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from dataclasses import dataclass

import psutil

BUSY_INTERVAL_S = 0.25
IDLE_INTERVAL_S = 1.0
NUM_SAMPLES = 4
"""Threads are given back when this many samples in a row have room for them, and taken away at the first."""
TOLERATED_CORES = 0.35
"""Work of others that is not worth a thread: a desktop is never quite idle."""


def fitting_threads(most: int, cores: int, others: float) -> int:
    """Return the threads, 1 to `most`, for which `others` leave a core of their own; `others` is in cores."""
    return max(1, min(most, int(cores - others + TOLERATED_CORES)))


@dataclass(frozen=True)
class _Clock:
    """Seconds so far: of the wall, of all work on the cores that this process may use, and of its own."""

    wall_s: float
    all_s: float
    own_s: float

    @classmethod
    def read(cls, cores: set[int]) -> _Clock:
        times = psutil.cpu_times(percpu=True)
        idle = ("idle", "iowait", "guest", "guest_nice")  # what guests take is in `user` and `nice` too
        busy = (
            sum(core) - sum(getattr(core, name) for name in idle)
            for core in (times[index] for index in cores)
        )
        return cls(time.monotonic(), sum(busy), time.process_time())


class ThreadBalance(threading.Thread):
    """Sets the library's threads to what other programs leave, as long as the process lives."""

    def __init__(self, library: ctypes.CDLL) -> None:
        super().__init__(name="blas-threads", daemon=True)
        self._library = library
        self._cores: set[int] = os.sched_getaffinity(0)  # type: ignore[attr-defined, unused-ignore]
        self._most = min(len(self._cores), psutil.cpu_count(logical=False) or len(self._cores))
        self._others: deque[float] = deque(maxlen=NUM_SAMPLES)

    def start(self) -> None:
        """Begin, where there is more than one core to share."""
        self._library.openblas_set_num_threads(self._most)
        if self._most > 1:
            super().start()

    def run(self) -> None:
        """Look at the load a few times a second while this process computes, else once."""
        interval_s = BUSY_INTERVAL_S
        before = _Clock.read(self._cores)
        while True:
            time.sleep(interval_s)
            now = _Clock.read(self._cores)
            own = (now.own_s - before.own_s) / (now.wall_s - before.wall_s)
            self._others.append((now.all_s - before.all_s) / (now.wall_s - before.wall_s) - own)
            threads = fitting_threads(self._most, len(self._cores), max(self._others))
            self._library.openblas_set_num_threads(threads)
            interval_s = BUSY_INTERVAL_S if own > 0.5 else IDLE_INTERVAL_S
            before = now
