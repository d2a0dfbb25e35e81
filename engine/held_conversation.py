"""What is held of one conversation: its versions, what left its context, and what of it is on disk."""

from __future__ import annotations

from dataclasses import dataclass

from engine.kv.cache import SequenceCache
from engine.lost_text import LostText
from engine.outside import Check, Outside, SpilledContext
from engine.prefixes.stored_context import StoredContext
from engine.released import ReleasedText
from engine.spill import SpillFolder
from engine.versions import Versions


@dataclass(eq=False)
class HeldConversation:
    """What is held of a conversation.

    Attributes:
        versions: of it; while it is outside, there is one.
        released: text that left its context.
        outside: what of it is on disk, None while all of it is in memory.
        lost: what did not come back from there, until that is told.
    """

    versions: Versions
    released: ReleasedText
    outside: Outside | None = None
    lost: LostText | None = None

    @property
    def cache(self) -> SequenceCache:
        """The sequence of the version that goes on."""
        return self.versions.current.cache

    @property
    def is_stored(self) -> bool:
        """Whether it is outside, and outlives this process there."""
        return isinstance(self.outside, StoredContext)

    def spill(self, folder: SpillFolder, check: Check) -> None:
        """Take its only version out of memory into a file of this process.

        Raises:
            Cancelled: `check` says so; it stays in memory.
            OSError: the disk takes no more.
        """
        text = self.versions.current.held
        spilled = folder.spill(self.cache, check)
        self.outside = SpilledContext(folder, spilled, self.cache, text)

    def bring_in(self, check: Check) -> None:
        """Bring what is on disk into memory; see `Outside.bring_in`.

        Raises:
            Cancelled: `check` says so; what has come in stays.
            OSError, BlobError: nothing of it can come back.
        """
        if self.outside is not None:
            self.lost = self.outside.bring_in(check)
            self.outside = None

    def close(self) -> None:
        """Give its memory back, and its files; what is stored stays there."""
        if self.outside is not None:
            self.outside.discard()
        self.released.forget()
        self.versions.close()
