"""The sequences of conversations that were read: the one in hand, and idle ones in memory or on disk."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Cancelled
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters
from engine.spill import SpilledSequence, SpillFolder

log = logging.getLogger(__name__)

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave, and every sequence is then where it was or where it was
to go."""


def _go_on() -> None:
    """Be no reason to stop."""


@dataclass(eq=False)
class _Held:
    """A conversation's sequence; `spilled` says where its keys and values are when they are on disk."""

    cache: SequenceCache
    nbytes: int = 0
    spilled: SpilledSequence | None = None


class HeldSequences:
    """Keeps the caches of conversations by their ids, as long as one model is loaded.

    One of them is in hand; the others are idle. Idle ones go to disk when room is needed, the one that was in
    hand longest ago first, and come back when they are taken. What cannot go there, or does not come back
    whole, is given up: its conversation is read again, which nobody is told but the log and the counters.

    Attributes:
        counters: what happened to pages.
        conversation_id: whose sequence is in hand, None for none.
    """

    def __init__(self, spill_root: Path | None) -> None:
        self.counters = PageCounters()
        self.conversation_id: int | None = None
        self._held: dict[int, _Held] = {}
        self._folder = None if spill_root is None else SpillFolder(spill_root)

    @property
    def in_hand(self) -> SequenceCache | None:
        """The sequence of the conversation that was taken or kept last, while it is in memory."""
        return None if self.conversation_id is None else self.in_memory(self.conversation_id)

    @property
    def idle_nbytes(self) -> int:
        """Bytes that idle sequences take in memory."""
        return sum(held.cache.nbytes for held in self._idle_in_memory())

    @property
    def memory_nbytes(self) -> int:
        """Bytes that all sequences take in memory."""
        return sum(held.cache.nbytes for held in self._held.values() if held.spilled is None)

    def in_memory(self, conversation_id: int) -> SequenceCache | None:
        """Return a conversation's sequence where that is in memory, without taking it."""
        held = self._held.get(conversation_id)
        return None if held is None or held.spilled else held.cache

    def take(self, conversation_id: int, check: Check = _go_on) -> SequenceCache | None:
        """Return a conversation's sequence as it was left, from disk if it is there; None where none is held.

        It is in hand then. The one that was, becomes idle.

        Raises:
            Cancelled: `check` says so; what is on disk stays there.
        """
        held = self._held.pop(conversation_id, None)
        self.conversation_id = conversation_id
        if held is None:
            return None
        if held.spilled is not None and not self._restore(conversation_id, held, held.spilled, check):
            return None
        self._held[conversation_id] = held  # the last one is the one that was in hand last
        return held.cache

    def keep(self, conversation_id: int, cache: SequenceCache) -> None:
        """Hold a sequence for a conversation, instead of the one that it had, and have it in hand."""
        former = self._held.get(conversation_id)
        if former is None or former.cache is not cache:
            self.forget(conversation_id)
            self._held[conversation_id] = _Held(cache)
        self.conversation_id = conversation_id

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation's sequence back."""
        held = self._held.pop(conversation_id, None)
        if held is not None:
            self._drop(held)
        if conversation_id == self.conversation_id:
            self.conversation_id = None

    def make_room(self, nbytes: int, conversation_id: int | None = None, check: Check = _go_on) -> int:
        """Spill idle sequences until so many bytes are free; return the bytes that this gave back.

        With `conversation_id` that one is spared, as it is about to be taken, and not the one in hand.

        Raises:
            Cancelled: `check` says so.
        """
        spared = self.conversation_id if conversation_id is None else conversation_id
        freed = 0
        for number, held in list(self._held.items()):
            if freed >= nbytes:
                break
            if number != spared and held.spilled is None:
                freed += self._spill(number, held, check)
        return freed

    def spill_idle(self, check: Check = _go_on) -> int:
        """Spill all idle sequences; return the bytes that this gave back.

        Raises:
            Cancelled: `check` says so.
        """
        return self.make_room(self.idle_nbytes, check=check)

    def count_hits(self, num_pages: int) -> None:
        """Count pages that a reply found in memory."""
        self._count(hits=num_pages)

    def close(self) -> None:
        """Give everything back; what is taken after that is not there."""
        for conversation_id in list(self._held):
            self.forget(conversation_id)
        if self._folder is not None:
            self._folder.close()

    def _idle_in_memory(self) -> list[_Held]:
        return [
            held
            for conversation_id, held in self._held.items()
            if conversation_id != self.conversation_id and held.spilled is None
        ]

    def _spill(self, conversation_id: int, held: _Held, check: Check) -> int:
        """Take a sequence out of memory, to disk where that is possible; return the bytes it had."""
        held.nbytes, num_pages = held.cache.nbytes, held.cache.num_pages
        if self._folder is None or not held.cache.can_move:
            self._give_up(conversation_id, held, "its keys and values cannot go to disk")
            return held.nbytes
        try:
            held.spilled = self._folder.spill(held.cache, check)
        except OSError as error:
            self._give_up(conversation_id, held, error)
            return held.nbytes
        self._count(spills=num_pages)
        log.info("Spilled conversation %d: %d pages", conversation_id, num_pages)
        return held.nbytes

    def _restore(self, conversation_id: int, held: _Held, spilled: SpilledSequence, check: Check) -> bool:
        assert self._folder is not None
        try:
            self._folder.restore(spilled, held.cache, check)
        except Cancelled:
            self._held[conversation_id] = held
            raise
        except (OSError, BlobError) as error:
            self._give_up(conversation_id, held, error)
            return False
        except BaseException:
            self._drop(held)
            raise
        held.spilled = None
        self._count(restores=held.cache.num_pages)
        log.info("Restored conversation %d: %d pages", conversation_id, held.cache.num_pages)
        return True

    def _give_up(self, conversation_id: int, held: _Held, why: object) -> None:
        self._count(evictions=held.cache.num_pages)
        log.warning("Conversation %d will be read again: %s", conversation_id, why)
        self._held.pop(conversation_id, None)
        self._drop(held)

    def _drop(self, held: _Held) -> None:
        if held.spilled is not None and self._folder is not None:
            self._folder.discard(held.spilled)
        held.cache.close()

    def _count(self, **added: int) -> None:
        counts = {name: getattr(self.counters, name) + more for name, more in added.items()}
        self.counters = dataclasses.replace(self.counters, **counts)
