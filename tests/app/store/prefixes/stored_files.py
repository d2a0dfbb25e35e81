"""Looking at the files of a store from outside, and keeping them busy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


def content_of(path: Path) -> bytes:
    """The bytes of all files in the folder."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()) if file.is_file())


def holds_words_of(path: Path, name: str) -> bool:
    """Whether the words of a page are in any of the files."""
    return f"the words of {name}. ".encode() in content_of(path)


def assert_whole(path: Path) -> None:
    """Have SQLite check every page of the file."""
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert conn.execute("PRAGMA foreign_key_check").fetchall() == []


@contextmanager
def writing_elsewhere(path: Path) -> Iterator[None]:
    """Another process is in the middle of a transaction: who wants to write waits."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("BEGIN IMMEDIATE")
        yield
        conn.rollback()


@contextmanager
def locked_elsewhere(path: Path) -> Iterator[None]:
    """Another program has the whole file for itself: nobody reads or writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA locking_mode=EXCLUSIVE")
        conn.execute("BEGIN EXCLUSIVE")
        yield
        conn.rollback()
