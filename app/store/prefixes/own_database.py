"""One thread's connection to the pages: opened when it is needed, and again when the file is replaced."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from app.store.errors import DamagedStoreError, StoreError
from app.store.prefixes import recovery
from app.store.prefixes.counts import PrefixCounts
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.problems import Problems

log = logging.getLogger(__name__)
T = TypeVar("T")

_MOST_TRIES = 3
_BEGUN_ANEW = (
    "The file of the prefix cache was damaged. It has been begun anew: your conversations are complete, "
    "their text is read again when it is needed."
)


class OwnDatabase:
    """The connection of the thread that uses it; only that thread may.

    Attributes:
        path: of the file.
    """

    def __init__(self, path: Path, problems: Problems, counts: PrefixCounts) -> None:
        self.path = path
        self._problems = problems
        self._counts = counts
        self._database: PrefixDatabase | None = None

    @property
    def exists(self) -> bool:
        """Whether there is a file, or something that keeps one from being looked at."""
        try:
            return self.path.exists()
        except OSError:
            return True

    def use(self, query: Callable[[PrefixDatabase], T]) -> T:
        """Return what a query or a change gives; it is tried again in a new file where this one is no good.

        Raises:
            StoreError: it cannot be done now. The connection is closed then.
        """
        for _ in range(_MOST_TRIES):
            database = self._open()
            try:
                answer = query(database)
            except StoreError as error:
                if database.is_in_place:
                    self._begin_anew(database, error)
                    continue
            else:
                if database.is_in_place or self._database is not database:
                    return answer
            # Whatever it said: another file has taken its place, and this one is nobody's any more.
            self.close()
            # One that was cleared is not lost: an empty file is in its place.
            self._counts.add(losses=int(not self.exists))
        raise StoreError(f"{self.path} is replaced or damaged again and again. Look at what else uses it.")

    def clear(self) -> None:
        """Put an empty file in the place of this one.

        Raises:
            StoreError: it cannot be done now.
        """
        self.use(self._clear)

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _clear(self, database: PrefixDatabase) -> None:
        self._database = None
        with contextlib.closing(database):
            recovery.clear(database)

    def _begin_anew(self, database: PrefixDatabase, error: StoreError) -> None:
        """Do so where a file is damaged; another error is raised."""
        if not isinstance(error, DamagedStoreError):
            self.close()
            raise error
        log.warning("%s is begun anew: %s", self.path, error.__cause__ or error)
        self._database = None
        with contextlib.closing(database):
            if recovery.begin_anew(database):
                self._tell(_BEGUN_ANEW)

    def _open(self) -> PrefixDatabase:
        if self._database is None:
            opening = recovery.open_prefixes(self.path)
            self._database = opening.database
            if opening.problem is not None:
                self._tell(opening.problem)
        return self._database

    def _tell(self, sentence: str) -> None:
        self._counts.add(damaged=1, losses=1)
        self._problems.tell(sentence)
