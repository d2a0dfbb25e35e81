"""Standard streams that a command can rely on, however it was started."""

from __future__ import annotations

import io
import os
import sys


def prepare_standard_streams() -> None:
    """Open closed streams on nothing, and let none fail for a character that its encoding lacks.

    Without that, the next file to be opened, such as a database, would get the number of a closed stream and
    be written over by what is printed.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free number comes first
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def give_up_output() -> None:
    """Send what is still to be written to standard output nowhere, since writing it has failed."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
