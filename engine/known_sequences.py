"""What is known of conversations that were read: in memory, spilled, or among the stored prefixes."""

from __future__ import annotations

from pathlib import Path

from engine.held_context import HeldContext
from engine.held_conversation import HeldConversation
from engine.kv.cache import SequenceCache
from engine.kv.page_map import PageCounters
from engine.lost_text import LostText
from engine.outside import Outside
from engine.prefixes.cache import PrefixCache
from engine.prefixes.stored_context import StoredContext
from engine.released import ReleasedText
from engine.spans import Prompt
from engine.spill import SpillFolder
from engine.versions import Versions


class KnownSequences:
    """Tells what is held of conversations by their ids, and moves nothing.

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
