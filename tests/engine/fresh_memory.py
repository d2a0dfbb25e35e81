"""Memory that comes from the system and from nothing that this process has freed before."""

from __future__ import annotations

import mmap


def fresh_memory(nbytes: int) -> mmap.mmap:
    """Return so many bytes with every page of them written."""
    pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for offset in range(0, nbytes, mmap.PAGESIZE):
        pages[offset] = 1
    return pages
