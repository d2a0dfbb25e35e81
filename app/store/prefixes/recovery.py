"""Opening `prefixes.db` whatever has happened to it: nothing in it is worth a rescue."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.store.prefixes.database import PrefixDatabase


@dataclass(frozen=True, eq=False)
class PrefixOpening:
    """An open `prefixes.db`.

    Attributes:
        database: it.
        problem: a sentence about what was wrong with the file and has been begun anew; None where all was
            well, or the file was just not there.
    """

    database: PrefixDatabase
    problem: str | None = None


def open_prefixes(path: Path, clock: Callable[[], float] = time.time) -> PrefixOpening:
    """Open the pages; a damaged file is deleted, a foreign one put aside, and a new one begun at once.

    A newer schema, a locked file, a full disk or a lack of rights is raised as a `StoreError`, and the file
    is left as it is.
    """
    raise NotImplementedError


def begin_anew(database: PrefixDatabase) -> None:
    """Close a database that showed damage in use, and delete its files, unless another process has done so.

    `open_prefixes` then begins a new one. The words that were in the damaged file are gone with it.
    """
    raise NotImplementedError


def clear(database: PrefixDatabase) -> None:
    """Close a database and put an empty one in its place, with the pins and what is remembered of models.

    All words in it are gone at once, however large it was. Every other connection to it, in this process or
    another one, says `StoreReplacedError` at its next use. `open_prefixes` opens the new one.
    """
    raise NotImplementedError
