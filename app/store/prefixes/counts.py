"""What happened to the pages since the program started, counted by several threads."""

from __future__ import annotations

import threading


class PrefixCounts:
    """Counts of pages.

    Attributes:
        saved: written to disk.
        restored: read from it.
        evicted: deleted to make room for others.
        damaged: pages, manifests and whole files that were dropped, as they were not what had been written.
        losses: times that much of what was put may have been lost.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.saved = self.restored = self.evicted = self.damaged = self.losses = 0

    def add(
        self, *, saved: int = 0, restored: int = 0, evicted: int = 0, damaged: int = 0, losses: int = 0
    ) -> None:
        """Count so many more."""
        with self._lock:
            self.saved += saved
            self.restored += restored
            self.evicted += evicted
            self.damaged += damaged
            self.losses += losses
