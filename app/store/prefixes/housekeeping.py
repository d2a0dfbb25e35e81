"""Room for pages, and their end: the cap, eviction, deletion, and space that goes back to the disk."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import sqlite_utils

from app.store.connection import files_of
from app.store.errors import store_errors
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.records import MOST_DISK_SHARE, MOST_NBYTES, PrefixEntry
from app.store.prefixes.schema import PAGE_NBYTES

STEP_PAGES = 4
"""Pages of sequences that go in one transaction; the writers of other processes wait as long."""
STEP_CUT_PAGES = 256
"""Pages of the file that are cut off in one transaction: 4 MB."""
EMPTYING_TIMEOUT_S = 0.2
"""Other writers wait as long while the log is emptied."""
SPARE_SHARE = 50
"""This part of the limit is left for the log; where something is evicted, as much is made free at once."""

ROW_NBYTES = 16 * PAGE_NBYTES
"""What a blob takes on disk beyond its own bytes, at most: rows, indexes and padding."""

_IS_PINNED = """EXISTS (SELECT 1 FROM page_uses JOIN pins USING (conversation_id) WHERE page_id = pages.id)"""
_LEAF = f"""SELECT id, last_used FROM pages
    WHERE NOT EXISTS (SELECT 1 FROM pages AS child WHERE child.parent = pages.key) AND {_IS_PINNED} = ?
    ORDER BY last_used, position DESC LIMIT 1"""
_SEQUENCE = """SELECT id, last_used FROM sequences WHERE (conversation_id IN (SELECT * FROM pins)) = ?
    ORDER BY last_used LIMIT 1"""
_OWN_PAGES = """SELECT id FROM page_uses JOIN pages ON id = page_id WHERE conversation_id = ?1
    AND NOT EXISTS (SELECT 1 FROM page_uses AS other
                    WHERE other.page_id = pages.id AND other.conversation_id <> ?1)"""
_ENTRIES = """
    WITH uses AS (
        SELECT conversation_id, nbytes, last_used,
               (SELECT count(*) FROM page_uses AS other WHERE other.page_id = pages.id) > 1 AS is_shared
        FROM page_uses JOIN pages ON pages.id = page_id
    ), parts AS (
        SELECT conversation_id, 1 AS is_page, nbytes, is_shared * nbytes AS shared_nbytes, 0 AS num_tokens,
               last_used FROM uses
        UNION ALL SELECT conversation_id, 0, nbytes, 0, num_tokens, last_used FROM sequences
    )
    SELECT conversation_id, sum(is_page) AS num_pages, sum(nbytes) AS nbytes,
           sum(shared_nbytes) AS shared_nbytes, max(num_tokens) AS num_tokens, max(last_used) AS last_used,
           conversation_id IN (SELECT * FROM pins) AS is_pinned
    FROM parts GROUP BY conversation_id ORDER BY max(last_used) DESC, conversation_id DESC"""


def most_nbytes(path: Path, wanted_nbytes: int | None) -> int:
    """Return how much `prefixes.db` may take now: what is wanted, and no more than its share of the disk."""
    wanted = MOST_NBYTES if wanted_nbytes is None else wanted_nbytes
    with store_errors(path):
        folder = next(folder for folder in path.resolve().parents if folder.is_dir())
        return min(wanted, int(MOST_DISK_SHARE * (shutil.disk_usage(folder).free + taken_nbytes(path))))


def taken_nbytes(path: Path) -> int:
    """Return what `prefixes.db` takes on disk, with its log."""
    return sum(map(_nbytes_of, files_of(path)))


class Housekeeping:
    """What is done to the pages as a whole, on the thread of `database`; raises `StoreError`s.

    Deletions are many short transactions: another process or a reader waits for one of these at most, and
    what a process that is killed has left of them goes with the next call.
    """

    def __init__(self, database: PrefixDatabase) -> None:
        self._database = database

    def num_pages(self) -> int:
        """Return how many pages are stored."""
        with self._database.read() as db:
            return _number(db, "SELECT count(*) FROM pages")

    def entries(self) -> tuple[PrefixEntry, ...]:
        """Return what is kept by conversation, the one that was used last first."""
        with self._database.read() as db:
            rows = db.execute(_ENTRIES).fetchall()
        return tuple(map(_entry, rows))

    def make_room(self, nbytes: int, most: int) -> int | None:
        """Evict until `nbytes` more fit below `most`; return the number of pages, None where that is too few.

        Least recently used pages go first, those of pinned conversations last, and none before a page that
        was read behind it. What comes next takes their place in the file.
        """
        wanted = nbytes + ROW_NBYTES
        if self._has_room(wanted, most) or (self.empty_log() and self._has_room(wanted, most)):
            return 0
        spare = most // SPARE_SHARE
        file_limit = most - max(spare, wanted)
        goal = file_limit - spare - wanted
        if goal < 0:
            return None
        num_evicted = 0
        while (evicted := self._evict_some(goal)) is not None:
            num_evicted += evicted
        self._cut_off_free_pages(file_limit)
        self.empty_log()
        return num_evicted if self._has_room(wanted, most) else None

    def delete(self, conversation_id: int) -> None:
        """Delete all that is kept of a conversation, except pages that others have as well.

        Its words are in none of the files as soon as `give_back` has returned True.
        """
        with self._cutting_off() as db:
            for table in ("sequences", "pins"):
                db.execute(f"DELETE FROM {table} WHERE conversation_id = ?", (conversation_id,))
            rows = db.execute(f"{_OWN_PAGES} ORDER BY position DESC", (conversation_id,)).fetchall()
        for first in range(0, len(rows), STEP_PAGES):
            step = [row["id"] for row in rows[first : first + STEP_PAGES]]
            # Another conversation may have them by now.
            sql = f"DELETE FROM pages WHERE id IN ({_OWN_PAGES} AND id IN ({', '.join('?' * len(step))}))"
            with self._cutting_off() as db:
                db.execute(sql, (conversation_id, *step))
        with self._database.write() as db:
            db.execute("DELETE FROM page_uses WHERE conversation_id = ?", (conversation_id,))

    def keep_only(self, conversation_ids: Collection[int]) -> int:
        """Delete what is kept of all other conversations, as `delete` does; return how many these were.

        What belongs to no conversation stays.
        """
        sql = """SELECT conversation_id FROM page_uses UNION SELECT conversation_id FROM sequences
                 UNION SELECT conversation_id FROM pins"""
        with self._database.read() as db:
            stored = {row["conversation_id"] for row in db.execute(sql)}
        gone = stored - {0, *conversation_ids}
        for conversation_id in gone:
            self.delete(conversation_id)
        return len(gone)

    def give_back(self) -> bool:
        """Give the space that is free in the file back to the disk, and empty the log.

        Returns False where a reader, or another process that writes, kept the log from being emptied: call
        it again then. Call it after `delete`, after `keep_only`, after a lower cap, and at the start of a
        process, since the last one may have been killed before it could.
        """
        return self._cut_off_free_pages(0) and self.empty_log()

    def empty_log(self) -> bool:
        """Write the log into the file and cut it to nothing; return False where somebody was in the way."""
        return self._database.connection.empty_log(EMPTYING_TIMEOUT_S)

    def _evict_some(self, most_live_nbytes: int) -> int | None:
        """Evict until so little is left, at most `STEP_PAGES` pages; None where it is, or nothing is left."""
        num_pages = num_evicted = 0
        with self._database.write() as db:
            live = _live_nbytes(db)
            while num_evicted < STEP_PAGES and _live_nbytes(db) > most_live_nbytes:
                table = _evict_next(db)
                if table is None:
                    break
                num_pages += table == "pages"
                num_evicted += 1
            if num_evicted:
                # What becomes free is overwritten.
                self._database.count_written(db, live - _live_nbytes(db))
        return num_pages if num_evicted else None

    def _has_room(self, nbytes: int, most: int) -> bool:
        """Whether a write of so much leaves the file and its log, through which it goes, below `most`."""
        with self._database.read() as db:
            file, live = _file_nbytes(db), _live_nbytes(db)
        log = _nbytes_of(files_of(self._database.path)[0])
        spare = max(most // SPARE_SHARE, nbytes)
        return max(file, live + nbytes) <= most - spare and file + log + nbytes <= most

    def _cut_off_free_pages(self, file_limit: int) -> bool:
        """Make the file shorter until it takes so little or has no free pages; return whether that is so."""
        while num_pages := self._num_pages_above(file_limit):
            with self._database.write() as db:
                if not self._cut_off(db, min(num_pages, STEP_CUT_PAGES)):
                    return False
        return True

    @contextmanager
    def _cutting_off(self) -> Iterator[sqlite_utils.Database]:
        """A transaction at whose end the pages that it has made free are cut off: they are never written."""
        with self._database.write() as db:
            before = _number(db, "PRAGMA freelist_count")
            yield db
            self._cut_off(db, _number(db, "PRAGMA freelist_count") - before)

    def _cut_off(self, db: sqlite_utils.Database, most_pages: int) -> int:
        """Make the file shorter by so many pages, as far as so many are free; return their number."""
        num_pages = min(most_pages, _number(db, "PRAGMA freelist_count"))
        for _ in range(num_pages):
            # A single call stops after the first page, whatever it is told.
            db.execute("PRAGMA incremental_vacuum(1)")
        if num_pages > 0:
            # Each of them had another page moved into its place, unless it was at the end.
            self._database.count_written(db, num_pages * PAGE_NBYTES)
        return num_pages

    def _num_pages_above(self, file_limit: int) -> int:
        with self._database.read() as db:
            above = -(-(_file_nbytes(db) - file_limit) // PAGE_NBYTES)
            return max(0, min(above, _number(db, "PRAGMA freelist_count")))


def _evict_next(db: sqlite_utils.Database) -> str | None:
    """Delete the page or manifest that is to go first; return the name of its table."""
    for is_pinned in (False, True):
        pages = [(row["last_used"], 0, row["id"], "pages") for row in db.execute(_LEAF, (is_pinned,))]
        sequences = [
            (row["last_used"], 1, row["id"], "sequences") for row in db.execute(_SEQUENCE, (is_pinned,))
        ]
        for *_, row_id, table in sorted(pages + sequences)[:1]:
            db.execute(f"DELETE FROM {table} WHERE id = ?", (row_id,))
            return table
    return None


def _entry(row: sqlite3.Row) -> PrefixEntry:
    return PrefixEntry(
        conversation_id=row["conversation_id"],
        num_pages=row["num_pages"],
        nbytes=row["nbytes"],
        shared_nbytes=row["shared_nbytes"],
        num_tokens=row["num_tokens"],
        last_used=datetime.fromtimestamp(row["last_used"] / 1000, UTC),
        is_pinned=bool(row["is_pinned"]),
    )


def _file_nbytes(db: sqlite_utils.Database) -> int:
    return _number(db, "PRAGMA page_count") * PAGE_NBYTES


def _live_nbytes(db: sqlite_utils.Database) -> int:
    return _file_nbytes(db) - _number(db, "PRAGMA freelist_count") * PAGE_NBYTES


def _number(db: sqlite_utils.Database, sql: str) -> int:
    ((number,),) = db.execute(sql).fetchall()
    return int(number)


def _nbytes_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
