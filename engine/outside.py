"""Where keys and values are that are not all in memory: spilled by this process, or stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.kv.cache import SequenceCache
from engine.lost_text import LostText
from engine.spans import Prompt
from engine.spill import SpilledSequence, SpillFolder

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave."""


class Outside(Protocol):
    """What is on disk of a conversation that is not in memory."""

    @property
    def text(self) -> Prompt:
        """What was read."""

    @property
    def missing_nbytes(self) -> int:
        """Bytes that it will take in memory beside those that it takes already."""

    def bring_in(self, check: Check) -> LostText | None:
        """Bring all of it into memory; return what did not come back and why, None where all did.

        Raises:
            Cancelled: `check`, which is called between pages, says so; the next call goes on.
            OSError, BlobError: nothing of it can come back.
        """

    def discard(self) -> None:
        """Remove what is on disk, where that is of use to this process only."""


@dataclass(frozen=True, eq=False)
class SpilledContext:
    """Keys and values in a file of this process, all or nothing of them.

    Attributes:
        folder: has the file.
        spilled: where they are in it.
        cache: to which they belong.
        text: what was read.
    """

    folder: SpillFolder
    spilled: SpilledSequence
    cache: SequenceCache
    text: Prompt

    @property
    def missing_nbytes(self) -> int:
        """Bytes that it will take in memory, beside a few of the room in its pools."""
        return self.spilled.nbytes

    def bring_in(self, check: Check) -> None:
        """Do what `Outside.bring_in` says."""
        self.folder.restore(self.spilled, self.cache, check)

    def discard(self) -> None:
        """Remove the file."""
        self.folder.discard(self.spilled)
