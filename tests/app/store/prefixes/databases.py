"""A database of pages with a time of its own, and chains of pages in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.recovery import open_prefixes
from engine.prefixes.records import NewPage
from tests.app.store.prefixes.stored_texts import PAGE_NBYTES, key_of, page_of


class Clock:
    """A time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@contextmanager
def opened(path: Path, clock: Clock | None = None) -> Iterator[PrefixDatabase]:
    database = open_prefixes(path, clock or Clock()).database
    try:
        yield database
    finally:
        database.close()


def chain_of(
    name: str, num_pages: int, conversation_id: int = 1, behind: str = "", nbytes: int = PAGE_NBYTES
) -> list[NewPage]:
    """Pages `name 0`, `name 1`, ..., each read behind the one before, the first one behind `behind`."""
    names = [behind, *(f"{name} {number}" for number in range(num_pages))]
    return [
        replace(page_of(child, conversation_id, parent, nbytes=nbytes), position=16 * place)
        for place, (parent, child) in enumerate(pairwise(names))
    ]


def keys_of(name: str, num_pages: int) -> list[bytes]:
    return [key_of(f"{name} {number}") for number in range(num_pages)]


def put(database: PrefixDatabase, pages: Iterable[NewPage]) -> None:
    for page in pages:
        assert database.put_page(page)
