"""What was read of conversations: the one in hand, and idle ones in memory or on disk."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Cancelled
from engine.held_context import HeldContext
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters
from engine.released import ReleasedText
from engine.spans import Prompt
from engine.spill import SpilledSequence, SpillFolder
from engine.versions import Versions

log = logging.getLogger(__name__)

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave, and every sequence is then where it was or where it was
to go."""


def _go_on() -> None:
    """Be no reason to stop."""


@dataclass(eq=False)
class _Held:
    """What is held of a conversation; `spilled` says where it is when it is on disk, as one version then."""

    versions: Versions
    released: ReleasedText
    spilled: SpilledSequence | None = None
    text: Prompt | None = None
    """What was spilled."""

    @property
    def cache(self) -> SequenceCache:
        """The sequence of the version that goes on."""
        return self.versions.current.cache


class HeldSequences:
    """Keeps what was read of conversations by their ids, as long as one model is loaded.

    One of them is in hand; the others are idle. When room is needed, versions that are not going on are
    forgotten first: what they begin with is held anyway. Then idle conversations go to disk, the one that was
    in hand longest ago first, and come back when they are taken. What cannot go there, or does not come back
    whole, is given up: its conversation is read again, which nobody is told but the log and the counters.

    Attributes:
        counters: what happened to pages.
        conversation_id: whose sequence is in hand, None for none.
        aside: what is read for an aside at the moment, None for nothing.
    """

    def __init__(self, spill_root: Path | None) -> None:
        self.counters = PageCounters()
        self.conversation_id: int | None = None
        self.aside: HeldContext | None = None
        self._held: dict[int, _Held] = {}
        self._folder = None if spill_root is None else SpillFolder(spill_root)

    @property
    def in_hand(self) -> HeldContext | None:
        """What was read of the conversation that was taken or kept last, while it is in memory."""
        versions = self.versions_in_hand
        return None if versions is None else versions.current

    @property
    def versions_in_hand(self) -> Versions | None:
        """The versions of that conversation."""
        return None if self.conversation_id is None else self.in_memory(self.conversation_id)

    @property
    def idle_nbytes(self) -> int:
        """Bytes that idle conversations take in memory, and versions that are not going on."""
        in_hand = self.versions_in_hand
        return self.memory_nbytes - (0 if in_hand is None else in_hand.nbytes - in_hand.others_nbytes)

    @property
    def memory_nbytes(self) -> int:
        """Bytes that all conversations take in memory."""
        caches = [cache for held in self._in_memory().values() for cache in held.versions.caches()]
        return SequenceCache.total_nbytes([*caches, *([] if self.aside is None else [self.aside.cache])])

    def in_memory(self, conversation_id: int) -> Versions | None:
        """Return what is held of a conversation where that is in memory, without taking it."""
        held = self._held.get(conversation_id)
        return None if held is None or held.spilled else held.versions

    def released(self, conversation_id: int | None) -> ReleasedText | None:
        """Return the text that left a conversation's context, None where nothing is held of it."""
        held = None if conversation_id is None else self._held.get(conversation_id)
        return None if held is None else held.released

    def texts(self, conversation_id: int) -> list[Prompt]:
        """Return what is on disk of a conversation: all of it, where it is there, and what was released."""
        held = self._held.get(conversation_id)
        if held is None:
            return []
        return [*([] if held.text is None else [held.text]), *held.released.texts()]

    def take(self, conversation_id: int, check: Check = _go_on) -> HeldContext | None:
        """Return a conversation as it was left, from disk if it is there; None where nothing is held.

        It is in hand then. The one that was, becomes idle.

        Raises:
            Cancelled: `check` says so; none is in hand then.
        """
        held = self._held.pop(conversation_id, None)
        self.conversation_id = None
        if held is not None:
            self._held[conversation_id] = held  # the last one is the one that was in hand last
        versions = self.bring_back(conversation_id, check)
        self.conversation_id = conversation_id
        return None if versions is None else versions.current

    def bring_back(self, conversation_id: int, check: Check = _go_on) -> Versions | None:
        """Return what is held of a conversation, from disk if it is there, without having it in hand.

        Raises:
            Cancelled: `check` says so.
        """
        held = self._held.get(conversation_id)
        if held is not None and held.spilled is not None:
            self._restore(conversation_id, held, held.spilled, check)
        return self.in_memory(conversation_id)

    def keep(self, conversation_id: int, context: HeldContext) -> None:
        """Hold a context for a conversation, instead of all that was held of it, and have it in hand."""
        former = self._held.get(conversation_id)
        if former is None or former.versions.current is not context:
            self.forget(conversation_id)
            self._held[conversation_id] = _Held(Versions(context), ReleasedText(self._folder))
        self.conversation_id = conversation_id

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation back."""
        held = self._held.pop(conversation_id, None)
        if held is not None:
            self._drop(held)
        if conversation_id == self.conversation_id:
            self.conversation_id = None

    def forget_alternatives(self, conversation_id: int) -> None:
        """Forget all of a conversation but the version that goes on, such as before that is read again.

        Its pages and positions are others then.
        """
        self.forget_versions(conversation_id)
        if (released := self.released(conversation_id)) is not None:
            released.forget()

    def forget_versions(self, conversation_id: int | None = None, nbytes: int | None = None) -> int:
        """Forget versions that are not going on, the one that went on longest ago of each first.

        Args:
            conversation_id: whose; None for those of all conversations, the one in hand last.
            nbytes: stop once so many bytes are free; None for never.

        Returns: the bytes that this gave back.
        """
        freed = 0
        for number, held in self._in_memory().items():
            while conversation_id in (None, number) and held.versions.num_others:
                if nbytes is not None and freed >= nbytes:
                    return freed
                before = held.versions.nbytes
                self._count(evictions=held.versions.forget_oldest())
                freed += before - held.versions.nbytes
        return freed

    def make_room(self, nbytes: int, conversation_id: int | None = None, check: Check = _go_on) -> int:
        """Forget versions and spill idle conversations until so many bytes are free; return the bytes freed.

        With `conversation_id` that one is spared, as it is about to be taken, and not the one in hand.

        Raises:
            Cancelled: `check` says so.
        """
        spared = self.conversation_id if conversation_id is None else conversation_id
        freed = self.forget_versions(nbytes=nbytes)
        for number, held in list(self._held.items()):
            if freed >= nbytes:
                break
            if number != spared and held.spilled is None:
                freed += self._spill(number, held, check)
        return freed

    def spill_idle(self, check: Check = _go_on) -> int:
        """Spill all idle conversations; return the bytes that this gave back.

        Raises:
            Cancelled: `check` says so.
        """
        return self.forget_versions() + self.make_room(self.idle_nbytes, check=check)

    def count_hits(self, num_pages: int) -> None:
        """Count pages that a reply found in memory."""
        self._count(hits=num_pages)

    def close(self) -> None:
        """Give everything back; what is taken after that is not there."""
        for conversation_id in list(self._held):
            self.forget(conversation_id)
        if self._folder is not None:
            self._folder.close()

    def _in_memory(self) -> dict[int, _Held]:
        return {number: held for number, held in self._held.items() if held.spilled is None}

    def _spill(self, conversation_id: int, held: _Held, check: Check) -> int:
        """Take a sequence out of memory, to disk where that is possible; return the bytes it had."""
        nbytes, num_pages, text = held.cache.nbytes, held.cache.num_pages, held.versions.current.held
        if self._folder is None or not held.cache.can_move:
            self._give_up(conversation_id, held, "its keys and values cannot go to disk")
            return nbytes
        try:
            held.spilled = self._folder.spill(held.cache, check)
        except OSError as error:
            self._give_up(conversation_id, held, error)
            return nbytes
        held.text = text
        self._count(spills=num_pages)
        log.info("Spilled conversation %d: %d pages", conversation_id, num_pages)
        return nbytes

    def _restore(self, conversation_id: int, held: _Held, spilled: SpilledSequence, check: Check) -> None:
        assert self._folder is not None
        try:
            self._folder.restore(spilled, held.cache, check)
        except Cancelled:
            raise
        except (OSError, BlobError) as error:
            self._give_up(conversation_id, held, error)
            return
        except BaseException:
            self.forget(conversation_id)
            raise
        held.spilled = held.text = None
        self._count(restores=held.cache.num_pages)
        log.info("Restored conversation %d: %d pages", conversation_id, held.cache.num_pages)

    def _give_up(self, conversation_id: int, held: _Held, why: object) -> None:
        self._count(evictions=held.cache.num_pages)
        log.warning("Conversation %d will be read again: %s", conversation_id, why)
        self._held.pop(conversation_id, None)
        self._drop(held)

    def _drop(self, held: _Held) -> None:
        if held.spilled is not None and self._folder is not None:
            self._folder.discard(held.spilled)
        held.released.forget()
        held.versions.close()

    def _count(self, **added: int) -> None:
        counts = {name: getattr(self.counters, name) + more for name, more in added.items()}
        self.counters = dataclasses.replace(self.counters, **counts)
