"""Finds the process of the window that is open, from its lock file."""

from __future__ import annotations

import psutil

from app.paths import AppPaths

CLOCK_STEP_S = 2.0
"""The start of a process is known to a hundredth of a second at best, times of files may be whole seconds."""


def window_process(paths: AppPaths) -> int | None:
    """Return the number of the process that has the window of this data folder open, None without one.

    Its first line is the process that took the lock (Qt's QLockFile). A file that a killed window left behind
    names a number that another program may have by now: one that started after the file was written.
    """
    try:
        pid = int(paths.window_lock.read_text().split("\n", 1)[0])
        written_s = paths.window_lock.stat().st_mtime
        begun_s = psutil.Process(pid).create_time()
    except (OSError, ValueError, psutil.Error):
        return None
    return pid if begun_s <= written_s + CLOCK_STEP_S else None
