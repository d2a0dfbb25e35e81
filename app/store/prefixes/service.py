"""The store of pages that outlives the process, as the engine and the window see it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from app.store.prefixes.records import PrefixEntry, PrefixFigures, PrefixSettings
from engine.prefixes.records import NewPage, PrefixStore, SaveMode, StoredPage, StoredSequence

log = logging.getLogger(__name__)


class PrefixService(PrefixStore):
    """`prefixes.db` for one process: read on the engine's thread, written on one of its own.

    Nothing raises: what cannot be read is not there, what cannot be written is not kept, and when the cause
    is gone it goes on by itself. Nothing is opened and no thread is begun before it is needed.

    Attributes:
        path: the file.
    """

    def __init__(
        self,
        path: Path,
        settings: PrefixSettings | None = None,
        on_problem: Callable[[str], None] = log.warning,
    ) -> None:
        """Args:
        path: of the file; it is created when something is kept.
        settings: what may be kept.
        on_problem: called once for each new problem with a sentence, on the thread that met it.
        """
        self.path = path
        raise NotImplementedError

    # For the window and the terminal, from any thread; none waits for the disk longer than a short reading.

    @property
    def settings(self) -> PrefixSettings:
        """What may be kept; a change holds from now on, and deletes nothing but what passes the limit."""
        raise NotImplementedError

    @settings.setter
    def settings(self, settings: PrefixSettings) -> None:
        raise NotImplementedError

    def figures(self) -> PrefixFigures:
        """Return the figures of the whole store."""
        raise NotImplementedError

    def entries(self) -> tuple[PrefixEntry, ...]:
        """Return what is kept by conversation, last used first."""
        raise NotImplementedError

    def pin(self, conversation_id: int, pinned: bool) -> None:
        """Let a conversation's pages go last when room is needed, or no longer."""
        raise NotImplementedError

    def delete(self, conversation_id: int) -> None:
        """Delete what is kept of a conversation and let nothing of it be kept any more, at once.

        Its pages that other conversations use stay. Its words are in none of the files when `flush` returns.
        """
        raise NotImplementedError

    def allow(self, conversation_id: int) -> None:
        """Let a conversation be kept again, whose deletion was undone."""
        raise NotImplementedError

    def clear(self) -> None:
        """Delete all that is kept, also what waits to be written; what is put from now on is kept."""
        raise NotImplementedError

    def keep_only(self, conversation_ids: Collection[int]) -> None:
        """Delete what is kept of conversations that are not among these, nor put since the program started."""
        raise NotImplementedError

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is written and deleted, or so many seconds; return whether it is."""
        raise NotImplementedError

    def leave(self) -> None:
        """Close the calling thread's connection; each thread that the engine runs on does so at its end."""
        raise NotImplementedError

    def close(self) -> None:
        """End the writing after what is being written, close this thread's connection, keep nothing any more.

        What still waits to be written is dropped (`flush` first), what is to be deleted is deleted.
        """
        raise NotImplementedError

    # The engine's side, on its own thread; see `PrefixStore`.

    @property
    def mode(self) -> SaveMode:
        """What may be kept now."""
        raise NotImplementedError

    def model_digest(self, path: Path) -> str | None:
        """Return the digest of a model's content, None while it is being found out."""
        raise NotImplementedError

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the stored pages of the longest beginning of `keys` that is there whole."""
        raise NotImplementedError

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored, or on their way there."""
        raise NotImplementedError

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not there."""
        raise NotImplementedError

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read."""
        raise NotImplementedError

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether only another model's pages are kept of a conversation."""
        raise NotImplementedError

    def touch(self, keys: Collection[bytes]) -> None:
        """Take note that pages were used now."""
        raise NotImplementedError

    def drop_page(self, key: bytes) -> None:
        """Delete and count a page that is not what was written; it is not found again."""
        raise NotImplementedError

    def drop_sequence(self, conversation_id: int, model: str) -> None:
        """Delete and count a manifest that is not what was written; it is not found again."""
        raise NotImplementedError

    @property
    def has_room(self) -> bool:
        """Whether more can be put now."""
        raise NotImplementedError

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until there is room, or so many seconds; return whether there is.

        Returns at once where waiting is of no use: nothing may be kept, or the disk is full.
        """
        raise NotImplementedError

    def put_page(self, page: NewPage) -> bool:
        """Have a page written; return False where there is no room. Of a deleted conversation: dropped."""
        raise NotImplementedError

    def put_sequence(self, sequence: StoredSequence) -> bool:
        """Have a conversation's pages and manifest noted; return False where there is no room."""
        raise NotImplementedError
