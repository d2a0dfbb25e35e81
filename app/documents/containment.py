"""The walls around a process that reads a foreign file."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import stat
import sys
import threading
import time

from app.documents.limits import ADDRESS_SPACE_NBYTES, RESIDENT_NBYTES, TIME_LIMIT_S

EXIT_OUT_OF_MEMORY = 70
"""Exit status of a process that needed too much memory."""

EXIT_UNREAD = 71
"""Exit status of a process whose output nobody reads any more."""

_WATCH_INTERVAL_S = 0.1


def contain_this_process() -> None:
    """Bound this process's memory and processor time, and end it when the reader of its output is gone.

    Only for processes that do nothing else: the bounds cannot be lifted again.
    """
    _lower_limit(resource.RLIMIT_CORE, 0)
    _lower_limit(resource.RLIMIT_CPU, TIME_LIMIT_S)
    _lower_limit(resource.RLIMIT_AS, ADDRESS_SPACE_NBYTES)
    threading.Thread(target=_watch, name="containment", daemon=True).start()


def _lower_limit(kind: int, value: int) -> None:
    """Set a limit of the system, where it has this one and allows it."""
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, hard))


def _watch() -> None:
    """End the process at once when its memory or its reader is gone; a parser may never return to Python."""
    poller = _output_poller()
    while True:
        if poller is None:
            time.sleep(_WATCH_INTERVAL_S)
        elif poller.poll(_WATCH_INTERVAL_S * 1000):
            os._exit(EXIT_UNREAD)
        if _peak_resident_nbytes() > RESIDENT_NBYTES:
            os._exit(EXIT_OUT_OF_MEMORY)


def _output_poller() -> select.poll | None:
    """Return what reports that the other end of the output was closed, None when the output is no pipe."""
    descriptor = sys.stdout.fileno()
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISSOCK(mode):
        return None
    poller = select.poll()
    poller.register(descriptor, 0)  # no events: errors and hang-ups are reported anyway
    return poller


def _peak_resident_nbytes() -> int:
    """Return the most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
