"""What passes between the engine and a store of pages that outlives the process. Plain data."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class SaveMode(enum.Enum):
    """What may be kept on disk."""

    NEVER = "never"
    DOCUMENTS = "documents"
    """Pages of system prompts and documents only, no word of a message."""
    EVERYTHING = "everything"


class Absence(enum.Enum):
    """Why something that was read once is not there any more."""

    EVICTED = "evicted"
    """It made room for other pages, or the user cleared it."""
    DAMAGED = "damaged"
    """It was not what had been written, and was dropped."""


@dataclass(frozen=True)
class StoredPage:
    """A page that is stored, without its content.

    Attributes:
        key: which page it is: its tokens and positions, all that precedes them, the model and the format.
        nbytes: of its blob.
        num_tokens: in it.
        bits: bits a number, the mean of all its blocks without scales; with more, it may replace one with
            less.
    """

    key: bytes
    nbytes: int
    num_tokens: int
    bits: float


@dataclass(frozen=True, eq=False)
class NewPage:
    """A page that is to be stored.

    Attributes:
        key: as in `StoredPage`.
        parent: the key of the page that it was read behind, empty for the first one.
        model: digest of the model.
        position: of its first token.
        num_tokens: in it.
        bits: as in `StoredPage`.
        blob: its content, with a checksum of its own.
        conversation_id: whose it is; 0 for no conversation.
    """

    key: bytes
    parent: bytes
    model: str
    position: int
    num_tokens: int
    bits: float
    blob: bytes | bytearray
    conversation_id: int


@dataclass(frozen=True, eq=False)
class StoredSequence:
    """What is kept of a conversation: its pages in order, and the rest.

    Attributes:
        conversation_id: whose it is.
        model: digest of the model that read it.
        keys: of its pages, each once, in the order of the text.
        manifest: what goes with them, the open tokens included, with a checksum of its own; empty where only
            pages may be kept.
        num_tokens: of the whole.
    """

    conversation_id: int
    model: str
    keys: tuple[bytes, ...]
    manifest: bytes | bytearray
    num_tokens: int


class PrefixStore(Protocol):
    """A store of pages as the engine sees it, from its own thread.

    No method raises for what is wrong with the disk or the file: what cannot be read is not there, what
    cannot be written is not kept. The store counts and tells that by itself.
    """

    @property
    def mode(self) -> SaveMode:
        """What may be kept now; the user may change it at any time."""

    def model_digest(self, path: Path) -> str | None:
        """Return the digest of a model's content, None while it is being found out.

        That is begun with the first call, on another thread.
        """

    # Finding.

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the pages that are stored of the longest beginning of `keys` that is stored whole."""

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored, or on their way there."""

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not there. It is not checked yet."""

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read. The manifest is not checked yet."""

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether only another model's pages are kept of a conversation."""

    def touch(self, keys: Collection[bytes]) -> None:
        """Take note that pages were used now; those that precede them are among `keys`."""

    def drop_page(self, key: bytes) -> None:
        """Delete and count a page that is not what was written."""

    def drop_sequence(self, conversation_id: int, model: str) -> None:
        """Delete and count a manifest that is not what was written; its pages stay."""

    # Keeping. What is put is written on another thread, in the order in which it was put.

    @property
    def num_losses(self) -> int:
        """Grows each time that much of what was put may be lost: it may be put again.

        The disk was full, the file was damaged, the user cleared it or took back a deletion.
        """

    @property
    def has_room(self) -> bool:
        """Whether more can be put now: what waits to be written is bounded, and so is what is written."""

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait until there is room, or so many seconds; return whether there is."""

    def put_page(self, page: NewPage) -> bool:
        """Have a page written, in place of one that is there; return False where there is no room.

        One that another conversation has as well stays, but for one with more bits: that would come back with
        fewer than it was left with. All that is read for no conversation stays likewise: each question in the
        terminal is another one.
        """

    def put_sequence(self, sequence: StoredSequence) -> bool:
        """Have a conversation's pages noted, and its manifest; return False where there is no room.

        Pages that it had before stay noted as its own until it is deleted.
        """
