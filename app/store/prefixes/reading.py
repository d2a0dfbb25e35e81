"""What is asked of the pages on disk, and of those on their way there."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias, TypeVar

from app.store.errors import StoreError
from app.store.prefixes.counts import PrefixCounts
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.own_database import OwnDatabase
from app.store.prefixes.problems import Problems, Side
from app.store.prefixes.waiting import Waiting
from engine.prefixes.records import StoredPage, StoredSequence

T = TypeVar("T")
StoredName: TypeAlias = bytes | tuple[int, str]
"""The key of a page, or whose sequence it is and of which model."""


class PrefixReader:
    """Asks the file on any thread; what cannot be asked is answered with something else.

    After a problem it is left alone for a while, and it is never created.
    """

    def __init__(self, path: Path, problems: Problems, counts: PrefixCounts) -> None:
        self._path = path
        self._problems = problems
        self._counts = counts
        self._own = threading.local()

    def ask(self, query: Callable[[PrefixDatabase], T], otherwise: T) -> T:
        """Return what a query gives on this thread's connection, which stays open until `leave`."""
        if not hasattr(self._own, "database"):
            self._own.database = self._new_database()
        return self._ask(self._own.database, query, otherwise)

    def ask_briefly(self, query: Callable[[PrefixDatabase], T], otherwise: T) -> T:
        """Do the same with a connection for this query only."""
        with closing(self._new_database()) as database:
            return self._ask(database, query, otherwise)

    def leave(self) -> None:
        """Close this thread's connection."""
        if hasattr(self._own, "database"):
            self._own.database.close()

    def _new_database(self) -> OwnDatabase:
        return OwnDatabase(self._path, self._problems, self._counts)

    def _ask(self, own: OwnDatabase, query: Callable[[PrefixDatabase], T], otherwise: T) -> T:
        if not own.exists or self._problems.pause_left_s(Side.READING):
            return otherwise
        try:
            answer = own.use(query)
        except StoreError as error:
            self._problems.met(Side.READING, error)
            return otherwise
        self._problems.gone(Side.READING)
        return answer


class PrefixFinder:
    """Finds pages and sequences for the engine, those that wait to be written as well."""

    def __init__(self, reader: PrefixReader, waiting: Waiting, counts: PrefixCounts) -> None:
        self._reader = reader
        self._waiting = waiting
        self._counts = counts
        self._hidden: set[StoredName] = set()

    def hide(self, name: StoredName) -> None:
        """Take what is stored under a name as not there, until it is deleted."""
        self._hidden.add(name)

    def show(self, name: StoredName) -> None:
        """Take what is stored under a name as there again."""
        self._hidden.discard(name)

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the stored pages of the longest beginning of `keys` that is there whole."""
        found: list[StoredPage] = []
        while len(found) < len(keys):
            rest = keys[len(found) :]
            waiting = self._waiting.page(rest[0])
            if waiting is not None:
                found.append(StoredPage(waiting.key, len(waiting.blob), waiting.num_tokens, waiting.bits))
                continue
            stored = self._find_stored(rest)
            if not stored:
                break
            found += stored
        return tuple(found)

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored, or on their way there."""
        waiting = {key: page.bits for key in keys if (page := self._waiting.page(key)) is not None}
        rest = [key for key in keys if key not in waiting and key not in self._hidden]
        return {**self._reader.ask(lambda database: database.stored_bits(rest), {}), **waiting}

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not there."""
        waiting = self._waiting.page(key)
        if waiting is not None:
            return bytes(waiting.blob)
        if key in self._hidden:
            return None
        blob = self._reader.ask(lambda database: database.read_page(key), None)
        if blob is not None:
            self._counts.add(restored=1)
        return blob

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read."""
        if self._waiting.is_deleted(conversation_id):
            return None
        waiting = self._waiting.sequence(conversation_id, model)
        if waiting is not None and waiting.manifest:
            return waiting
        if (conversation_id, model) in self._hidden:
            return None
        return self._reader.ask(lambda database: database.find_sequence(conversation_id, model), None)

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether only another model's pages are kept of a conversation."""
        if self._waiting.is_deleted(conversation_id):
            return False
        return self._reader.ask(lambda database: database.is_of_other_model(conversation_id, model), False)

    def _find_stored(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        wanted = list(itertools.takewhile(lambda key: key not in self._hidden, keys))
        return self._reader.ask(lambda database: database.find_pages(wanted), ())
