"""Stopping work that runs on another thread."""

from __future__ import annotations

import threading
import time

from engine.errors import Cancelled


class CancelToken:
    """A flag that one thread sets and another checks between two units of work."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask the work to stop; may be called from any thread, more than once."""
        self._event.set()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Cancelled` when `cancel` was called."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, timeout_s: float) -> bool:
        """Sleep up to `timeout_s` seconds, less when cancelled; return whether it was."""
        return self._event.wait(timeout_s)


class LinkedCancelToken(CancelToken):
    """A token that also stops with another one."""

    def __init__(self, outer: CancelToken) -> None:
        super().__init__()
        self._outer = outer

    @property
    def cancelled(self) -> bool:
        """Whether this or the other one was cancelled."""
        return super().cancelled or self._outer.cancelled

    def check(self) -> None:
        """Raise `Cancelled` when this or the other one was cancelled."""
        self._outer.check()
        super().check()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, less when the other one is cancelled; this one is only cancelled between two events."""
        return self._outer.wait(timeout_s) or self.cancelled


class TimedCancelToken(LinkedCancelToken):
    """A token that also stops with another one, and after so many seconds."""

    def __init__(self, outer: CancelToken, timeout_s: float) -> None:
        super().__init__(outer)
        self._until_s = time.monotonic() + timeout_s

    @property
    def cancelled(self) -> bool:
        """Whether this or the other one was cancelled, or the time is over."""
        return super().cancelled or time.monotonic() >= self._until_s

    def check(self) -> None:
        """Raise `Cancelled` when it is."""
        if self.cancelled:
            raise Cancelled

    def wait(self, timeout_s: float) -> bool:
        """Sleep, less when the other one is cancelled or the time is over; return whether it is."""
        return super().wait(max(0.0, min(timeout_s, self._until_s - time.monotonic())))
