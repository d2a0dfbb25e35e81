"""The prefixes of one loaded model that a store has: what of a text was read before, by any process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.held_context import HeldContext
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.model import Model
from engine.prefixes.identity import ModelIdentity
from engine.prefixes.records import Absence, PrefixStore, SaveMode
from engine.spans import Prompt

Check = Callable[[], None]
"""Looks for a stop; it raises `Cancelled` to leave."""


@dataclass(eq=False)
class StoredContext:
    """A context whose keys and values are in the store.

    Attributes:
        context: its cache is outside, as far as its pages have not come in.
        text: all that was read of it; more than comes in where a page of it is not there any more.
        nbytes: that it takes in memory once it is there.
        lost: why not all of it came in, None where all did or nothing has yet.
    """

    context: HeldContext
    text: Prompt
    nbytes: int
    lost: Absence | None = None


class PrefixCache:
    """Finds what was read before, and brings it in.

    Nothing is found while the store may keep nothing, and before the digest of the model is known.

    Args:
        store: has the pages.
        identity: which model it is.
        model: the model that reads.

    Attributes:
        store: as given.
    """

    def __init__(self, store: PrefixStore, identity: ModelIdentity, model: Model) -> None:
        self.store = store
        self._identity = identity
        self._model = model

    @property
    def digest(self) -> str | None:
        """The digest of the model, None where it is not known yet, or nothing may be kept."""
        return None if self.store.mode is SaveMode.NEVER else self._identity.digest

    def page_key(self, cache: SequenceCache, chain: bytes) -> bytes:
        """Return the key of a page of a cache in the store, by its chain key; the digest must be known."""
        raise NotImplementedError

    def sequence(self, conversation_id: int) -> StoredContext | None:
        """Return a conversation as it was saved, None where it was not. One of 0 or less is none."""
        raise NotImplementedError

    def is_of_other_model(self, conversation_id: int) -> bool:
        """Whether only another model's pages are kept of a conversation."""
        raise NotImplementedError

    def beginning(self, prompt: Prompt, kv: KVSpec, kept_tokens: int) -> StoredContext | None:
        """Return the longest beginning of a prompt that is stored, of whatever conversation it was.

        None where it does not spare the reading of at least a page's tokens more than `kept_tokens`.
        """
        raise NotImplementedError

    def bring_in(self, stored: StoredContext, check: Check) -> None:
        """Bring the pages in, the hottest first; what is not there or damaged ends the text before it.

        Raises:
            Cancelled: `check`, which is called between pages, says so. What has come in stays.
        """
        raise NotImplementedError

    def touch(self, cache: SequenceCache) -> None:
        """Tell the store that the pages of a cache are used now."""
        raise NotImplementedError
