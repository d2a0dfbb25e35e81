"""The pages, manifests and digests in `prefixes.db`, through the connection of one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from app.store.connection import StoreConnection
from engine.prefixes.records import NewPage, StoredPage, StoredSequence


class PrefixDatabase:
    """`prefixes.db` as one thread sees it. Every method raises `StoreError`s, and changes all or nothing.

    Each change is a short transaction of its own. A `StoreReplacedError` says that the file is not the one
    that was opened any more: close this and open it again. A `DamagedStoreError` says that it is to be begun
    anew: see `app.store.prefixes.recovery`.

    Attributes:
        connection: to the file, for the housekeeping.
    """

    def __init__(self, connection: StoreConnection, clock: Callable[[], float] = time.time) -> None:
        self.connection = connection
        self._clock = clock

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> PrefixDatabase:
        """Open `path`, which is created when it is missing; for a damaged one see `recovery.open_prefixes`."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        raise NotImplementedError

    # Finding: none of this writes.

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the pages that are stored of the longest beginning of `keys` that is stored whole."""
        raise NotImplementedError

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored."""
        raise NotImplementedError

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not stored."""
        raise NotImplementedError

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read; its manifest may be empty."""
        raise NotImplementedError

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether a conversation is kept as other models read it, and not as this one did."""
        raise NotImplementedError

    def written_today(self) -> int:
        """Return the bytes that were written to disk today, by all processes."""
        raise NotImplementedError

    def model_digest(self, path: str, fingerprint: str) -> str | None:
        """Return the digest of the model at `path` that was remembered with the same `fingerprint`."""
        raise NotImplementedError

    # Keeping.

    def put_page(self, page: NewPage) -> int:
        """Store a page, in place of one with other bits, and note whose it is.

        One with more bits that another conversation has as well stays.

        Returns the bytes that this wrote to disk; 0 where the page is not stored anew.
        """
        raise NotImplementedError

    def put_sequence(self, sequence: StoredSequence) -> int:
        """Note whose the pages are that are stored of a sequence, and keep its manifest in place of the last.

        An empty manifest leaves the last one as it is. Returns the bytes that this wrote to disk.
        """
        raise NotImplementedError

    def touch(self, keys: Collection[bytes]) -> None:
        """Note that pages were used now; those that were used a moment ago are left as they are."""
        raise NotImplementedError

    def drop_page(self, key: bytes) -> bool:
        """Delete a page; return whether it was there."""
        raise NotImplementedError

    def drop_sequence(self, conversation_id: int, model: str) -> bool:
        """Delete a manifest; return whether it was there. The pages stay noted as the conversation's."""
        raise NotImplementedError

    def pin(self, conversation_id: int, pinned: bool) -> None:
        """Have the pages of a conversation evicted last, or no longer so."""
        raise NotImplementedError

    def remember_model(self, path: str, fingerprint: str, digest: str) -> None:
        """Remember the digest of the model at `path`, in place of an earlier one."""
        raise NotImplementedError
