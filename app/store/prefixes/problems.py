"""What keeps the store from working at the moment: told once, and tried again after a while."""

from __future__ import annotations

import enum
import math
import threading
import time
from collections.abc import Callable

from app.store.errors import StoreError

QUIET_S = 3600.0
"""A problem that comes back is told again when it was away for so long."""


class Side(enum.Enum):
    """What a problem keeps from working; each side tries again by itself."""

    READING = "reading"
    WRITING = "writing"


class Problems:
    """The problems of reading and of writing, from any thread.

    Args:
        on_problem: called with a sentence for each new one.
        pause_s: after how many seconds is tried again.
        clock: seconds that only grow.
    """

    def __init__(
        self, on_problem: Callable[[str], None], pause_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_problem = on_problem
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._current: dict[Side, str] = {}
        self._met_at: dict[Side, float] = {}
        self._last_met: dict[str, float] = {}

    def met(self, side: Side, error: StoreError) -> None:
        """Take note of a problem; the side is not to be tried for a while."""
        with self._lock:
            self._current[side] = str(error)
            self._met_at[side] = self._clock()
        self.tell(str(error))

    def tell(self, sentence: str) -> None:
        """Tell what is wrong, or was and is mended, unless it was told already."""
        now = self._clock()
        with self._lock:
            is_new = now - self._last_met.get(sentence, -math.inf) >= QUIET_S
            self._last_met[sentence] = now
        if is_new:
            self._on_problem(sentence)

    def gone(self, side: Side) -> None:
        """Take note that a side works."""
        with self._lock:
            self._current.pop(side, None)

    def pause_left_s(self, side: Side) -> float:
        """Return for how many seconds a side is not to be tried; 0 where it may be."""
        with self._lock:
            if side not in self._current:
                return 0.0
            return max(0.0, self._met_at[side] + self._pause_s - self._clock())

    @property
    def sentence(self) -> str | None:
        """What is wrong now, None when nothing is."""
        with self._lock:
            return next((self._current[side] for side in Side if side in self._current), None)
