"""A process of a bench that prints what it measured."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from engine.errors import OctavoError
from engine.wording import last_line


def run_for_last_line(command: Sequence[str]) -> str:
    """Run a process and return the last line that it printed; this one sleeps meanwhile.

    Raises:
        OctavoError: it failed; the message has its last line.
    """
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = last_line(done.stderr) or f"it ended with status {done.returncode}"
        raise OctavoError(f"A process of the bench failed: {said}")
    return last_line(done.stdout)
