"""What was read of conversations: the one in hand, and idle ones in memory or on disk."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

from engine.errors import Cancelled
from engine.held_context import HeldContext
from engine.held_conversation import HeldConversation
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters
from engine.lost_text import LostText
from engine.outside import Check, Outside
from engine.prefixes.cache import PrefixCache
from engine.prefixes.stored_context import StoredContext
from engine.released import ReleasedText
from engine.spans import Prompt
from engine.spill import SpillFolder
from engine.versions import Versions

log = logging.getLogger(__name__)


def _go_on() -> None:
    """Be no reason to stop."""


class HeldSequences:
    """Keeps what was read of conversations by their ids, as long as one model is loaded.

    One of them is in hand; the others are idle. When room is needed, versions that are not going on are
    forgotten first: what they begin with is held anyway. Then idle conversations go to disk, the one that was
    in hand longest ago first, and come back when they are taken. What cannot go there, or does not come back
    whole, is given up: its conversation is read again, which nobody is told but the log and the counters.

    A conversation that is not held is looked for among the stored prefixes, once, and is then outside as one
    that was spilled.

    Args:
        spill_root: where conversations go to disk; None for nowhere.
        prefixes: those that are stored; None for none.

    Attributes:
        counters: what happened to pages.
        prefixes: as given.
        conversation_id: whose sequence is in hand, None for none.
        aside: what is read for an aside at the moment, None for nothing.
    """

    def __init__(self, spill_root: Path | None, prefixes: PrefixCache | None = None) -> None:
        self.counters = PageCounters()
        self.conversation_id: int | None = None
        self.aside: HeldContext | None = None
        self._held: dict[int, HeldConversation] = {}
        self._looked_for: set[int] = set()
        self._folder = None if spill_root is None else SpillFolder(spill_root)
        self.prefixes = prefixes

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
        """Bytes that all conversations take in memory, those among them that have come in in part."""
        caches = [cache for held in self._held.values() for cache in held.versions.caches()]
        return SequenceCache.total_nbytes([*caches, *([] if self.aside is None else [self.aside.cache])])

    def in_memory(self, conversation_id: int) -> Versions | None:
        """Return what is held of a conversation where that is in memory, without taking it."""
        held = self._held.get(conversation_id)
        return None if held is None or held.outside else held.versions

    def outside(self, conversation_id: int) -> Outside | None:
        """Return what is on disk of a conversation that is not in memory, None where there is none."""
        held = self._find(conversation_id)
        return None if held is None else held.outside

    def context(self, conversation_id: int) -> HeldContext | None:
        """Return the version of a conversation that goes on, in memory or not, without taking it."""
        held = self._find(conversation_id)
        return None if held is None else held.versions.current

    def lost(self, conversation_id: int) -> LostText | None:
        """Return what of a conversation did not come back from disk; it is told only once."""
        held = self._held.get(conversation_id)
        if held is None:
            return None
        lost, held.lost = held.lost, None
        return lost

    def contexts(self) -> list[tuple[int, HeldContext]]:
        """Return the version that goes on of each conversation in memory, the one in hand last."""
        found = [(number, held.versions.current) for number, held in self._in_memory().items()]
        return sorted(found, key=lambda each: each[0] == self.conversation_id)

    def released(self, conversation_id: int | None) -> ReleasedText | None:
        """Return the text that left a conversation's context, None where nothing is held of it."""
        held = None if conversation_id is None else self._held.get(conversation_id)
        return None if held is None else held.released

    def texts(self, conversation_id: int) -> list[Prompt]:
        """Return what is on disk of a conversation: all of it, where it is there, and what was released."""
        held = self._find(conversation_id)
        if held is None:
            return []
        return [*([] if held.outside is None else [held.outside.text]), *held.released.texts()]

    def take(self, conversation_id: int, check: Check = _go_on) -> HeldContext | None:
        """Return a conversation as it was left, from disk if it is there; None where nothing is held.

        It is in hand then. The one that was, becomes idle.

        Raises:
            Cancelled: `check` says so; none is in hand then.
        """
        held = self._find(conversation_id)
        self.conversation_id = None
        if held is not None:
            self._held[conversation_id] = self._held.pop(conversation_id)  # the last one was in hand last
        versions = self.bring_back(conversation_id, check)
        self.conversation_id = conversation_id
        return None if versions is None else versions.current

    def bring_back(self, conversation_id: int, check: Check = _go_on) -> Versions | None:
        """Return what is held of a conversation, from disk if it is there, without having it in hand.

        Raises:
            Cancelled: `check` says so.
        """
        while (held := self._find(conversation_id)) is not None and held.outside is not None:
            self._restore(conversation_id, held, check)
        return self.in_memory(conversation_id)

    def keep(self, conversation_id: int, context: HeldContext) -> None:
        """Hold a context for a conversation, instead of all that was held of it, and have it in hand."""
        former = self._held.get(conversation_id)
        if former is None or former.versions.current is not context:
            self.forget(conversation_id)
            self._held[conversation_id] = HeldConversation(Versions(context), ReleasedText(self._folder))
        self.conversation_id = conversation_id

    def begin(self, conversation_id: int, stored: StoredContext) -> None:
        """Hold what is stored for a conversation, instead of all that was held of it; it is to be taken."""
        self.forget(conversation_id)
        self._looked_for.add(conversation_id)
        self._hold(conversation_id, stored)

    def forget(self, conversation_id: int) -> None:
        """Give the memory, or the file, of a conversation back; what is stored of it stays there."""
        held = self._held.pop(conversation_id, None)
        self._looked_for.discard(conversation_id)
        if held is not None:
            held.close()
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

        What has come in of a conversation that is stored leaves again.

        With `conversation_id` that one is spared, as it is about to be taken, and not the one in hand.

        Raises:
            Cancelled: `check` says so.
        """
        spared = self.conversation_id if conversation_id is None else conversation_id
        freed = self.forget_versions(nbytes=nbytes)
        for number, held in list(self._held.items()):
            if freed >= nbytes:
                break
            if number != spared:
                freed += self._leave(number, held, check)
        return freed

    def spill_idle(self, check: Check = _go_on) -> int:
        """Spill all idle conversations; return the bytes that this gave back.

        Raises:
            Cancelled: `check` says so.
        """
        return self.forget_versions() + self.make_room(self.idle_nbytes, check=check)

    def use(self, cache: SequenceCache, num_hits: int) -> None:
        """Take note that a reply reads a cache, of which it found so many pages in memory."""
        self._count(hits=num_hits)
        if self.prefixes is not None:
            self.prefixes.touch(cache)

    def close(self) -> None:
        """Give everything back; what is taken after that is not there."""
        for conversation_id in list(self._held):
            self.forget(conversation_id)
        if self._folder is not None:
            self._folder.close()

    def _in_memory(self) -> dict[int, HeldConversation]:
        return {number: held for number, held in self._held.items() if held.outside is None}

    def _find(self, conversation_id: int) -> HeldConversation | None:
        """Return what is held of a conversation; what is not held is looked for in the store, once."""
        prefixes = self.prefixes
        if conversation_id in self._held or conversation_id in self._looked_for or prefixes is None:
            return self._held.get(conversation_id)
        if prefixes.digest is None:
            return None
        self._looked_for.add(conversation_id)
        stored = prefixes.sequence(conversation_id)
        return None if stored is None else self._hold(conversation_id, stored)

    def _hold(self, conversation_id: int, stored: StoredContext) -> HeldConversation:
        held = HeldConversation(Versions(stored.context), ReleasedText(self._folder), outside=stored)
        self._held[conversation_id] = held
        return held

    def _leave(self, conversation_id: int, held: HeldConversation, check: Check) -> int:
        """Take a conversation out of memory; return the bytes that it had there."""
        nbytes = held.cache.nbytes
        if held.outside is None:
            self._spill(conversation_id, held, check)
        elif held.is_stored and nbytes:
            self.forget(conversation_id)  # what has come in is still stored
        else:
            return 0
        return nbytes

    def _spill(self, conversation_id: int, held: HeldConversation, check: Check) -> None:
        """Have a conversation on disk where that is possible, and give it up elsewhere."""
        num_pages = held.cache.num_pages
        if self._folder is None or not held.cache.can_move:
            self._give_up(conversation_id, held, "its keys and values cannot go to disk")
            return
        try:
            held.spill(self._folder, check)
        except OSError as error:
            self._give_up(conversation_id, held, error)
            return
        self._count(spills=num_pages)
        log.info("Spilled conversation %d: %d pages", conversation_id, num_pages)

    def _restore(self, conversation_id: int, held: HeldConversation, check: Check) -> None:
        try:
            held.bring_in(check)
        except Cancelled:
            raise
        except (OSError, BlobError) as error:
            self._give_up(conversation_id, held, error)
            return
        except BaseException:
            self.forget(conversation_id)
            self._looked_for.add(conversation_id)  # what broke once may break again
            raise
        self._count(restores=held.cache.num_pages)
        log.info("Restored conversation %d: %d pages", conversation_id, held.cache.num_pages)

    def _give_up(self, conversation_id: int, held: HeldConversation, why: object) -> None:
        """Forget a conversation."""
        self._count(evictions=held.cache.num_pages)
        log.warning("Conversation %d will be read again: %s", conversation_id, why)
        self._held.pop(conversation_id, None)
        if not held.is_stored:
            self._looked_for.discard(conversation_id)  # an older state of it may be
        held.close()

    def _count(self, **added: int) -> None:
        counts = {name: getattr(self.counters, name) + more for name, more in added.items()}
        self.counters = dataclasses.replace(self.counters, **counts)
