"""Reading what can still be read out of a damaged store."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from app.store.connection import connect_for_reading, delete_files, files_of
from app.store.records import MessageState, Role
from app.store.stray_pages import PAGE_NBYTES, moved_schema, stray_rows

log = logging.getLogger(__name__)

_HEADER_NBYTES = 100
_MAX_ROWID = 1 << 24
_ROWS_AT_ONCE = 64
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError)
ROLES = {role.value for role in Role}
STATES = {state.value for state in MessageState}
Row = dict[str, object]


class DamagedFile:
    """The tables of a damaged store, read around the damage; the file itself is never changed."""

    def __init__(self, path: Path, conn: sqlite3.Connection, root_of_messages: int) -> None:
        self._path = path
        self._conn = conn
        self._root_of_messages = root_of_messages

    def applied_migrations(self) -> set[str]:
        """Return the names of the migrations that the file has seen, as far as they can be read."""
        return {str(row["name"]) for row in self.rows("_sqlite_migrations")}

    def messages(self) -> list[Row]:
        """Return all messages that can be read, also those that the tree of their table has lost."""
        found = {row["id"]: row for row in self.rows("messages")}
        copy = self._path.with_name(f"{self._path.name}.scanned")
        try:
            _copy(self._path, copy)
            _merge_log(copy)
            for row in stray_rows(copy, self._root_of_messages, "SELECT * FROM messages"):
                if _is_message(row):
                    found.setdefault(row["id"], dict(row))
        finally:
            delete_files(copy)
        return [found[message_id] for message_id in sorted(found, key=lambda value: int(str(value)))]

    def rows(self, table: str) -> Iterator[Row]:
        """Yield the rows of `table` that can be read, in the order of their ids.

        A range of ids that fails is halved until only the rows that cannot be read are left out. An old file
        may lack a table.
        """
        if not self._has(table):
            return
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

    def _has(self, table: str) -> bool:
        try:
            self._conn.execute(f'SELECT 1 FROM "{table}" LIMIT 0')
        except _UNREADABLE:
            return False
        return True

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
        return min(max(known, default=self._path.stat().st_size // 16), _MAX_ROWID)


@contextmanager
def damaged_file(path: Path, template: Path) -> Iterator[DamagedFile | None]:
    """Open what is left of the file at `path`; None when it holds nothing that looks like a store.

    When the schema cannot be read, a copy is read in which first the header and then the schema is that of
    `template`: an empty store of the same schema, or a newer one, whose tables begin at the same pages.
    """
    repaired = path.with_name(f"{path.name}.repaired")
    empty = template.read_bytes()
    header = {0: empty[:_HEADER_NBYTES]}
    # Behind the pages of both: the tables of the template begin at pages that a short file does not have.
    num_pages = -(-max(path.stat().st_size, len(empty)) // PAGE_NBYTES)
    schema = moved_schema(empty, num_pages)
    try:
        for patches in ({}, header, schema):
            if patches:
                _copy(path, repaired)
                _patch(repaired, patches)
            source = repaired if patches else path
            with closing(connect_for_reading(source)) as conn:
                root = _root_of_messages(conn)
                if root is not None:
                    yield DamagedFile(source, conn, root)
                    return
                if _is_of_another_program(conn):
                    break
        yield None
    finally:
        delete_files(repaired)


def _root_of_messages(conn: sqlite3.Connection) -> int | None:
    try:
        # SQLite refuses a truncated file or a bad schema unless it is told that somebody is at work on it.
        conn.execute("PRAGMA writable_schema=ON")
        conn.execute("SELECT id, conversation_id, parent_id, role, text, state FROM messages LIMIT 0")
        root = conn.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").fetchone()
        return int(root[0])
    except (*_UNREADABLE, TypeError, ValueError):
        return None


def _is_of_another_program(conn: sqlite3.Connection) -> bool:
    try:
        tables = {row["name"] for row in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    except _UNREADABLE:
        return False
    return bool(tables) and "_sqlite_migrations" not in tables


def _is_message(row: sqlite3.Row) -> bool:
    """Whether a row of any table, read as a message, is one."""
    whole_numbers = isinstance(row["id"], int) and isinstance(row["conversation_id"], int)
    texts = isinstance(row["text"], str) and isinstance(row["created_at"], str)
    return whole_numbers and texts and row["role"] in ROLES and row["state"] in STATES


def _copy(path: Path, copy: Path) -> None:
    delete_files(copy)
    for original, target in zip(files_of(path), files_of(copy), strict=True):
        if original.is_file() and not original.name.endswith("-shm"):
            shutil.copyfile(original, target)


def _merge_log(copy: Path) -> None:
    try:
        with closing(sqlite3.connect(copy)) as conn:
            conn.execute("PRAGMA writable_schema=ON")
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except _UNREADABLE as error:
        log.warning("what was only in the log is lost: %s", error)


def _patch(copy: Path, patches: dict[int, bytes]) -> None:
    with copy.open("r+b") as file:
        for start, content in patches.items():
            file.seek(start)
            file.write(content)
        num_pages = -(-file.seek(0, os.SEEK_END) // PAGE_NBYTES)
        # https://www.sqlite.org/fileformat2.html#the_database_header: pages in the file, free pages unknown
        file.seek(28)
        file.write(num_pages.to_bytes(4, "big") + bytes(8))
