"""Progress no oftener than anyone can see it."""

from __future__ import annotations

import time


class Pace:
    """Says when it is time for the next report: at once, then after every `interval_s` at the soonest."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._last_s: float | None = None

    def is_due(self) -> bool:
        """Return whether to report now; a yes begins the next interval."""
        now_s = time.monotonic()
        if self._last_s is not None and now_s - self._last_s < self._interval_s:
            return False
        self._last_s = now_s
        return True
