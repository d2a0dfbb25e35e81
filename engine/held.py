"""What was read of conversations: the one in hand, and idle ones in memory or on disk."""

from __future__ import annotations

import dataclasses
import logging

from engine.errors import Cancelled
from engine.held_context import HeldContext
from engine.held_conversation import HeldConversation
from engine.known_sequences import KnownSequences
from engine.kv.blob import BlobError
from engine.kv.cache import SequenceCache
from engine.outside import Check
from engine.prefixes.stored_context import StoredContext
from engine.released import ReleasedText
from engine.versions import Versions

log = logging.getLogger(__name__)


def _go_on() -> None:
    """Be no reason to stop."""


class HeldSequences(KnownSequences):
    """Keeps what was read of conversations by their ids, as long as one model is loaded.

    One of them is in hand; the others are idle. When room is needed, versions that are not going on are
    forgotten first: what they begin with is held anyway. Then idle conversations go to disk, the one that was
    in hand longest ago first, and come back when they are taken. What cannot go there, or does not come back
    whole, is given up: its conversation is read again, which nobody is told but the log and the counters.
    """

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

    def _leave(self, conversation_id: int, held: HeldConversation, check: Check) -> int:
        """Take a conversation out of memory; return the bytes that this gave back."""
        before = self.memory_nbytes
        if held.outside is None:
            self._spill(conversation_id, held, check)
        elif held.is_stored and held.cache.nbytes:
            self.forget(conversation_id)  # what has come in is still stored
        return before - self.memory_nbytes

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
