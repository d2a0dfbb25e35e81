"""Room for pages, and their end: the cap, eviction, deletion, and space that goes back to the disk."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.records import PrefixEntry


def most_nbytes(path: Path, wanted_nbytes: int | None) -> int:
    """Return how much `prefixes.db` may take now: what is wanted, and no more than its share of the disk."""
    raise NotImplementedError


def taken_nbytes(path: Path) -> int:
    """Return what `prefixes.db` takes on disk, with its log."""
    raise NotImplementedError


class Housekeeping:
    """What is done to the pages as a whole, on the thread of `database`; raises `StoreError`s.

    Deletions are many short transactions: another process or a reader waits for one of these at most, and
    what a process that is killed has left of them goes with the next call.
    """

    def __init__(self, database: PrefixDatabase) -> None:
        raise NotImplementedError

    def num_pages(self) -> int:
        """Return how many pages are stored."""
        raise NotImplementedError

    def entries(self) -> tuple[PrefixEntry, ...]:
        """Return what is kept by conversation, the one that was used last first."""
        raise NotImplementedError

    def make_room(self, nbytes: int, most: int) -> int | None:
        """Evict until `nbytes` more fit below `most`; return the number of pages, None where that is too few.

        Least recently used pages go first, those of pinned conversations last, and none before a page that
        was read behind it. The file does not become smaller: what comes next takes the place.
        """
        raise NotImplementedError

    def delete(self, conversation_id: int) -> None:
        """Delete all that is kept of a conversation, except pages that others have as well.

        Its words are in none of the files as soon as `give_back` has returned True.
        """
        raise NotImplementedError

    def keep_only(self, conversation_ids: Collection[int]) -> int:
        """Delete what is kept of all other conversations, as `delete` does; return how many these were."""
        raise NotImplementedError

    def give_back(self) -> bool:
        """Give the space that is free in the file back to the disk, and empty the log.

        Returns False where a reader, or another process that writes, kept the log from being emptied: call
        it again then. Call it after `delete`, after `keep_only`, after a lower cap, and at the start of a
        process, since the last one may have been killed before it could.
        """
        raise NotImplementedError
