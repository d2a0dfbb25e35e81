"""What the engine's thread is asked to do, by priority, and how all of it is stopped."""

from __future__ import annotations

import enum
import itertools
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.cancel import CancelToken

Run = Callable[[CancelToken], None]
"""Does what was asked for."""


class Priority(enum.IntEnum):
    """Which waiting request goes first; a stop does not wait at all, it is a flag that the work checks."""

    CONTROL = 0
    USER = 1
    BACKGROUND = 2
    """Done when nothing else is there, and cancelled by whatever cannot wait; its owner puts it again."""


@dataclass(order=True)
class Request:
    """One entry of the queue; equal priorities go first come, first served. None ends the thread."""

    priority: Priority
    number: int
    run: Run | None = field(compare=False)
    cancel: CancelToken = field(compare=False)


@dataclass(frozen=True)
class _Pending:
    """A request that waits or runs."""

    priority: Priority
    is_stoppable: bool


class RequestQueue:
    """Requests that wait, and the one that runs; any thread may put and stop, one takes."""

    def __init__(self) -> None:
        self._waiting: queue.PriorityQueue[Request] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._pending: dict[CancelToken, _Pending] = {}

    def qsize(self) -> int:
        """Return how many requests wait."""
        return self._waiting.qsize()

    def put(self, priority: Priority, run: Run | None, *, is_stoppable: bool, can_wait: bool = False) -> None:
        """Queue a request, which `stop` ends or only `cancel_all`.

        What is done in the background is cancelled by every other request, but for those that can wait.
        """
        request = Request(priority, next(self._numbers), run, CancelToken())
        with self._lock:
            if priority is not Priority.BACKGROUND and not can_wait:
                self._cancel(lambda pending: pending.priority is Priority.BACKGROUND)
            self._pending[request.cancel] = _Pending(priority, is_stoppable)
        self._waiting.put(request)

    def get(self, timeout_s: float | None = None) -> Request | None:
        """Return the next request, None where none has come within `timeout_s` seconds."""
        try:
            return self._waiting.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def done(self, request: Request) -> None:
        """Take note that a request has ended."""
        with self._lock:
            del self._pending[request.cancel]

    def stop(self) -> None:
        """Cancel what the user can stop, whether it runs or waits."""
        with self._lock:
            self._cancel(lambda pending: pending.is_stoppable)

    def cancel_all(self) -> None:
        """Cancel the request that runs and all that wait."""
        with self._lock:
            self._cancel(lambda pending: True)

    def _cancel(self, is_meant: Callable[[_Pending], bool]) -> None:
        for cancel, pending in self._pending.items():
            if is_meant(pending):
                cancel.cancel()
