"""A store of pages in memory, which a test may damage, and which remembers what was asked of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from engine.prefixes.digest import model_digest
from engine.prefixes.records import NewPage, PrefixStore, SaveMode, StoredPage, StoredSequence


class MemoryStore(PrefixStore):
    """Keeps everything until it is told to keep nothing.

    Attributes:
        pages: by key.
        sequences: by conversation and model.
        queries: the names of the methods that found something out, in the order of the calls.
        read: the keys of the pages that were read, in that order.
        touched: keys of pages that were used, in the order of the last use.
        dropped: keys of pages, and ids of conversations, that were not what had been written.
        put: the keys of pages in the order in which they were put, and 0 for each manifest.
        is_digest_known: whether the digests of models are known.
    """

    def __init__(self, mode: SaveMode = SaveMode.EVERYTHING) -> None:
        self.pages: dict[bytes, NewPage] = {}
        self.sequences: dict[tuple[int, str], StoredSequence] = {}
        self.queries: list[str] = []
        self.read: list[bytes] = []
        self.touched: dict[bytes, None] = {}
        self.dropped: list[bytes | int] = []
        self.put: list[bytes | int] = []
        self.is_digest_known = True
        self.takes_more = True
        self._mode = mode
        self._digests: dict[Path, str] = {}

    @property
    def mode(self) -> SaveMode:
        return self._mode

    @mode.setter
    def mode(self, mode: SaveMode) -> None:
        self._mode = mode

    def model_digest(self, path: Path) -> str | None:
        if not self.is_digest_known:
            return None
        if path not in self._digests:
            self._digests[path] = model_digest(path, lambda: None)
        return self._digests[path]

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        self.queries.append("find_pages")
        found = []
        for key in keys:
            if key not in self.pages:
                break
            page = self.pages[key]
            found.append(StoredPage(key, len(page.blob), page.num_tokens, page.bits))
        return tuple(found)

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        self.queries.append("stored_bits")
        return {key: self.pages[key].bits for key in keys if key in self.pages}

    def read_page(self, key: bytes) -> bytes | None:
        self.read.append(key)
        return bytes(self.pages[key].blob) if key in self.pages else None

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        self.queries.append("find_sequence")
        return self.sequences.get((conversation_id, model))

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        self.queries.append("is_of_other_model")
        models = {other for number, other in self.sequences if number == conversation_id}
        return bool(models) and model not in models

    def touch(self, keys: Collection[bytes]) -> None:
        for key in keys:
            self.touched.pop(key, None)
            self.touched[key] = None

    def drop_page(self, key: bytes) -> None:
        self.pages.pop(key, None)
        self.dropped.append(key)

    def drop_sequence(self, conversation_id: int, model: str) -> None:
        self.sequences.pop((conversation_id, model), None)
        self.dropped.append(conversation_id)

    @property
    def num_losses(self) -> int:
        return 0

    @property
    def has_room(self) -> bool:
        return self.takes_more and self._mode is not SaveMode.NEVER

    def wait_for_room(self, timeout_s: float) -> bool:
        return self.has_room

    def put_page(self, page: NewPage) -> bool:
        if not self.has_room:
            return False
        self.pages[page.key] = page
        self.put.append(page.key)
        return True

    def put_sequence(self, sequence: StoredSequence) -> bool:
        if not self.has_room:
            return False
        self.sequences[sequence.conversation_id, sequence.model] = sequence
        self.put.append(0)
        return True

    # What a test does to it.

    def keys_of(self, conversation_id: int) -> tuple[bytes, ...]:
        """Return the keys of a conversation's pages, in the order of the text."""
        (found,) = [each for (number, _), each in self.sequences.items() if number == conversation_id]
        return found.keys

    def evict(self, key: bytes) -> None:
        """Take a page away, as to keep a limit."""
        del self.pages[key]

    def replace_blob(self, key: bytes, blob: bytes) -> None:
        """Have something else in the place of a page."""
        self.pages[key] = dataclasses.replace(self.pages[key], blob=blob)

    def flip_bit(self, key: bytes, at: int) -> None:
        """Damage a page."""
        blob = bytearray(self.pages[key].blob)
        blob[at] ^= 1
        self.replace_blob(key, bytes(blob))
