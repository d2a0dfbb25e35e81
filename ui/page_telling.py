"""When the pages of a conversation are told: while somebody looks at them, and not too often."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

INTERVAL_S = 0.5
"""The pages are told twice a second at most."""


class PageTelling:
    """Has the pages told when they have changed, at once or when it is time for that again.

    Attributes:
        is_watched: whether somebody looks at them; any thread may set it.

    Args:
        tell: tells them.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self.is_watched = False
        self._tell = tell
        self._is_due = False
        self._told_s = -math.inf

    @property
    def due_in_s(self) -> float | None:
        """Seconds until pages are to be told that wait for it; None where none do."""
        return max(0.0, self._wait_s) if self._is_due else None

    @property
    def _wait_s(self) -> float:
        return self._told_s + INTERVAL_S - time.monotonic()

    def changed(self) -> None:
        """Tell the pages while they are watched, or have them told when it is time for that again."""
        self._is_due = self.is_watched
        if self._is_due and self._wait_s <= 0:
            self.tell()

    def tell_if_due(self) -> None:
        """Tell the pages when they wait for it and it is time."""
        if self._is_due and self._wait_s <= 0:
            self.tell()

    def tell(self) -> None:
        """Tell the pages now."""
        self._is_due = False
        self._told_s = time.monotonic()
        self._tell()
