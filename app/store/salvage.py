"""Reading what can still be read out of a damaged store."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from app.store.connection import files_of
from app.store.text import readable

log = logging.getLogger(__name__)

PAGE_NBYTES = 4096
_HEADER_NBYTES = 100
_MAX_ROWID = 1 << 24
_ROWS_AT_ONCE = 64
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
Row = dict[str, object]


class DamagedFile:
    """The tables of a damaged store, read around the damage; the file itself is never changed."""

    def __init__(self, conn: sqlite3.Connection, nbytes: int) -> None:
        self._conn = conn
        self._nbytes = nbytes

    def applied_migrations(self) -> set[str]:
        """Return the names of the migrations that the file has seen, as far as they can be read."""
        return {str(row["name"]) for row in self.rows("_sqlite_migrations")}

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of `table` that can be read, in the order of their ids.

        A range of ids that fails is halved until only the rows that cannot be read are left out.
        """
        for first in range(0, self._last_rowid(table) + 1, _ROWS_AT_ONCE):
            pending = [(first, first + _ROWS_AT_ONCE - 1)]
            while pending:
                low, high = pending.pop()
                found = self._range(table, low, high)
                if found is not None:
                    yield from found
                elif low < high:
                    middle = (low + high) // 2
                    pending += [(middle + 1, high), (low, middle)]

    def _range(self, table: str, low: int, high: int) -> list[Row] | None:
        sql = f'SELECT * FROM "{table}" WHERE rowid BETWEEN ? AND ? ORDER BY rowid'
        try:
            return [dict(row) for row in self._conn.execute(sql, (low, high))]
        except _UNREADABLE:
            return None

    def _last_rowid(self, table: str) -> int:
        known = []
        for sql in (
            f'SELECT max(rowid) FROM "{table}"',
            f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
        ):
            try:
                known += [int(value) for (value,) in self._conn.execute(sql) if value is not None]
            except (*_UNREADABLE, ValueError):
                log.debug("%s: no answer to %s", table, sql)
        # Where nothing is known, no more rows than fit into the file.
        return min(max(known, default=self._nbytes // 16), _MAX_ROWID)


@contextmanager
def damaged_file(path: Path, template: Path) -> Iterator[DamagedFile | None]:
    """Open what is left of the file at `path`; None when it holds nothing that looks like a store.

    When its first page is lost, a copy is read in which that page's header, or all of the page, is that of
    `template`: an empty store of the same schema, whose tables begin at the same pages.
    """
    repaired = path.with_name(f"{path.name}.repaired")
    try:
        for header_nbytes in (0, _HEADER_NBYTES, PAGE_NBYTES):
            if header_nbytes:
                _copy_with_header(path, repaired, template.read_bytes()[:header_nbytes])
            source = repaired if header_nbytes else path
            with closing(connect_for_reading(source)) as conn:
                tables = _tables(conn)
                if "messages" in tables:
                    yield DamagedFile(conn, path.stat().st_size)
                    return
                if tables:
                    break
        yield None
    finally:
        for leftover in files_of(repaired):
            leftover.unlink(missing_ok=True)


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot change the file, not even by clearing its log away."""
    conn = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.text_factory = readable
    return conn


def _tables(conn: sqlite3.Connection) -> set[str]:
    try:
        # SQLite refuses a truncated file or a bad schema unless it is told that somebody is at work on it.
        conn.execute("PRAGMA writable_schema=ON")
        return {row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except _UNREADABLE:
        return set()


def _copy_with_header(path: Path, copy: Path, header: bytes) -> None:
    for original, target in zip(files_of(path), files_of(copy), strict=True):
        target.unlink(missing_ok=True)
        if original.is_file() and not original.name.endswith("-shm"):
            shutil.copyfile(original, target)
    num_pages = -(-path.stat().st_size // PAGE_NBYTES)
    with copy.open("r+b") as file:
        file.write(header)
        # https://www.sqlite.org/fileformat2.html#the_database_header: pages in the file, free pages unknown
        file.seek(28)
        file.write(num_pages.to_bytes(4, "big") + bytes(8))
