"""What is told and set about the pages on disk, as plain data for any thread."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engine.prefixes.records import SaveMode

GB = 10**9
MOST_NBYTES = 10 * GB
"""What all pages take on disk at most, unless the user sets something else."""
MOST_DISK_SHARE = 0.1
"""They take no more than this share of what is free on the disk, and of what they take already."""
MOST_WRITTEN_NBYTES = 20 * GB
"""What is written in a day at most, unless the user sets something else."""


@dataclass(frozen=True)
class PrefixSettings:
    """What may be kept on disk.

    Attributes:
        mode: of which texts.
        most_nbytes: what all of it takes at most; None for `MOST_NBYTES`. Never more than `MOST_DISK_SHARE`.
        most_written_nbytes: what is written in a day at most.
    """

    mode: SaveMode = SaveMode.EVERYTHING
    most_nbytes: int | None = None
    most_written_nbytes: int = MOST_WRITTEN_NBYTES


@dataclass(frozen=True)
class PrefixEntry:
    """What is kept of one conversation.

    Attributes:
        conversation_id: whose; 0 for pages of no conversation that is left, such as those that the terminal
            has read.
        num_pages: pages.
        nbytes: of these and of its manifests.
        shared_nbytes: bytes of those among them that other conversations have as well.
        num_tokens: of the longest text that is kept whole; 0 where only beginnings are.
        last_used: when it was last saved or read.
        is_pinned: whether it goes last when room is needed.
    """

    conversation_id: int
    num_pages: int
    nbytes: int
    shared_nbytes: int
    num_tokens: int
    last_used: datetime
    is_pinned: bool


@dataclass(frozen=True)
class PrefixFigures:
    """The figures of the whole store.

    Attributes:
        num_pages: pages that are stored.
        nbytes: that the file takes on disk.
        most_nbytes: that it may take now.
        written_today_nbytes: that were written to disk today; SQLite writes everything twice.
        most_written_nbytes: that may be written in a day.
        waiting_nbytes: that wait to be written.
        saved: pages written since the program started.
        restored: pages read since then.
        evicted: pages that made room for others since then.
        damaged: pages and manifests that were not what had been written and were dropped, since then.
        problem: a sentence where nothing is kept or found at the moment, with what to do; else None.
    """

    num_pages: int
    nbytes: int
    most_nbytes: int
    written_today_nbytes: int
    most_written_nbytes: int
    waiting_nbytes: int
    saved: int
    restored: int
    evicted: int
    damaged: int
    problem: str | None
