"""What only Linux tells of memory, read from its files of text, and how memory goes back to it."""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from pathlib import Path

STALLS = Path("/proc/pressure/memory")
_IS_LINUX: bool = sys.platform == "linux"


def stalled_share(file: Path = STALLS) -> float | None:
    """Return the share of the last 10 s in which something waited for memory, None where that is unknown.

    That is `some avg10` of pressure stall information, which a control group has as well.
    """
    try:
        return parse_stalled_share(file.read_text())
    except (OSError, ValueError):  # a kernel without it, or started with psi=0
        return None


def parse_stalled_share(text: str) -> float:
    """Return the share, 0 to 1, that a text such as `some avg10=0.22 avg60=...` tells.

    Raises:
        ValueError: it is not such a text.
    """
    for line in text.splitlines():
        kind, *figures = line.split()
        if kind == "some":
            return float(dict(figure.split("=") for figure in figures)["avg10"]) / 100
    raise ValueError("no line begins with `some`")


def own_nbytes(pid: int) -> int | None:
    """Return the memory that is a process's own: anonymous pages in memory and in swap.

    Files that it reads are not in it, as the system takes those back; it is what macOS calls the physical
    footprint. None where the system does not tell.
    """
    try:
        return parse_own_nbytes(Path(f"/proc/{pid}/status").read_text())
    except (OSError, ValueError):
        return None


def parse_own_nbytes(text: str) -> int:
    """Return the bytes that the lines `RssAnon:  123 kB` and `VmSwap:  45 kB` of a process's status tell.

    Raises:
        ValueError: one of them is missing.
    """
    sizes = {"RssAnon": -1, "VmSwap": -1}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in sizes:
            sizes[name] = int(value.removesuffix("kB")) * 1024
    if min(sizes.values()) < 0:
        raise ValueError("the process has no memory, or the kernel does not tell")
    return sum(sizes.values())


def trim_heap() -> None:
    """Give the free pages of this process's heap back to the system, which glibc keeps otherwise.

    MLX's small buffers lie in the heap; clearing them leaves it as large as it was. Takes some tenths of a
    second at most; does nothing without glibc.
    """
    if trim := _malloc_trim():
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    if not _IS_LINUX:
        return None
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return trim
