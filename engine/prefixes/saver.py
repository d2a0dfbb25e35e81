"""When which pages are put into the store: settled ones while a prompt is read, the rest when it is quiet."""

from __future__ import annotations

from collections.abc import Callable

from engine.held import HeldSequences
from engine.held_context import HeldContext
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import PrefixStore


class PrefixSaver:
    """Saves what is held of conversations with one model.

    Nothing is saved while tokens are decoded. What has been saved is neither encoded nor written again.

    Args:
        store: where it goes; its mode says what may be kept.
        identity: which model it is.
        held: the conversations.
    """

    def __init__(self, store: PrefixStore, identity: ModelIdentity, held: HeldSequences) -> None:
        self._store = store
        self._identity = identity
        self._held = held

    def save_settled(self, conversation_id: int, context: HeldContext) -> None:
        """Put the pages of a context that lose no more bits by age; between two chunks of its prompt.

        Nothing waits: what there is no room for is left to the next chunk, or to `save`.
        """
        raise NotImplementedError

    def save(self, check: Callable[[], None]) -> None:
        """Put all that is in memory and not stored yet, idle conversations first, the one in hand last.

        Waits for room, as long as what waits is being written.

        Args:
            check: called between pages and while waiting; it may raise to stop. The next call goes on there.
        """
        raise NotImplementedError

    def forget(self, conversation_id: int) -> None:
        """Take note that a conversation is held no longer."""
        raise NotImplementedError
