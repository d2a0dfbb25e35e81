"""The pages, manifests and digests in `prefixes.db`, through the connection of one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import sqlite_utils

from app.store.connection import StoreConnection
from app.store.errors import StoreReplacedError, store_errors
from app.store.prefixes.schema import FILLER, OPTIONS, PREFIXES
from engine.kv.lineage import KEY_NBYTES
from engine.prefixes.records import NewPage, StoredPage, StoredSequence

TOUCH_AFTER_MS = 60_000
"""What was used within this time is not noted as used again."""
AHEAD_MS = 60_000
"""What was used so much later than now was used before the clock was set back."""
WRITTEN_TIMES = 2
"""SQLite writes everything into its log and then into the file."""

_WANTED = f"""WITH RECURSIVE wanted (place, key) AS (
    SELECT 0, substr(:keys, 1, {KEY_NBYTES})
    UNION ALL SELECT place + 1, substr(:keys, {KEY_NBYTES} * (place + 1) + 1, {KEY_NBYTES}) FROM wanted
    WHERE {KEY_NBYTES} * (place + 1) < length(:keys)
)"""
"""A list of keys, bound as one blob."""


class PrefixDatabase:
    """`prefixes.db` as one thread sees it. Every method raises `StoreError`s, and changes all or nothing.

    Each change is a short transaction of its own. A `StoreReplacedError` says that the file is not the one
    that was opened any more: close this and open it again. A `DamagedStoreError` says that it is to be begun
    anew: see `app.store.prefixes.recovery`.

    Attributes:
        path: the file.
        connection: to it, for the housekeeping.
    """

    def __init__(
        self, connection: StoreConnection, identity: tuple[int, int], clock: Callable[[], float] = time.time
    ) -> None:
        self.path = connection.path
        self.connection = connection
        self._identity = identity
        self._clock = clock

    @classmethod
    def open(cls, path: Path, clock: Callable[[], float] = time.time) -> PrefixDatabase:
        """Open `path`, which is created when it is missing; `recovery.open_prefixes` mends what is wrong."""
        connection = StoreConnection.open(path, PREFIXES, OPTIONS)
        try:
            with store_errors(connection.path):
                return cls(connection, _identity(connection.path), clock)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self.connection.close()

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still the one that was opened."""
        try:
            return _identity(self.path) == self._identity
        except OSError:
            return False

    @contextmanager
    def read(self) -> Iterator[sqlite_utils.Database]:
        """One unchanging view of the file, for the housekeeping."""
        self._check_place()
        with self.connection.read() as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[sqlite_utils.Database]:
        """One transaction, for the housekeeping."""
        self._check_place()
        with self.connection.write() as db:
            yield db

    # Finding: none of this writes.

    def find_pages(self, keys: Sequence[bytes]) -> tuple[StoredPage, ...]:
        """Return the pages that are stored of the longest beginning of `keys` that is stored whole."""
        # It ends at the first key that is not stored: beyond the last one, substr gives an empty one.
        sql = f"""WITH RECURSIVE chain (place, key, nbytes, num_tokens, bits) AS (
                SELECT 1, key, nbytes, num_tokens, bits FROM pages WHERE key = substr(:keys, 1, {KEY_NBYTES})
                UNION ALL
                SELECT place + 1, pages.key, pages.nbytes, pages.num_tokens, pages.bits FROM chain
                JOIN pages ON pages.key = substr(:keys, {KEY_NBYTES} * place + 1, {KEY_NBYTES})
            ) SELECT key, nbytes, num_tokens, bits FROM chain ORDER BY place"""
        with self.read() as db:
            return tuple(StoredPage(*row) for row in db.execute(sql, {"keys": b"".join(keys)}))

    def stored_bits(self, keys: Collection[bytes]) -> Mapping[bytes, float]:
        """Return the bits of those pages that are stored."""
        sql = f"{_WANTED} SELECT key, bits FROM wanted JOIN pages USING (key)"
        with self.read() as db:
            return dict(map(tuple, db.execute(sql, {"keys": b"".join(keys)})))

    def read_page(self, key: bytes) -> bytes | None:
        """Return the blob of a page, None where it is not stored."""
        sql = "SELECT blob FROM pages JOIN page_blobs ON page_id = id WHERE key = ?"
        with self.read() as db:
            row = db.execute(sql, (key,)).fetchone()
        return None if row is None else row["blob"]

    def find_sequence(self, conversation_id: int, model: str) -> StoredSequence | None:
        """Return what is kept of a conversation that this model read."""
        sql = """SELECT keys, manifest, num_tokens FROM sequences JOIN manifests ON sequence_id = id
                 WHERE conversation_id = ? AND model = ?"""
        with self.read() as db:
            row = db.execute(sql, (conversation_id, model)).fetchone()
        if row is None:
            return None
        keys = tuple(row["keys"][at : at + KEY_NBYTES] for at in range(0, len(row["keys"]), KEY_NBYTES))
        return StoredSequence(conversation_id, model, keys, row["manifest"], row["num_tokens"])

    def is_of_other_model(self, conversation_id: int, model: str) -> bool:
        """Return whether a conversation is kept as other models read it, and not as this one did."""
        sql = """SELECT model = ? AS is_this FROM (
                     SELECT model FROM page_uses JOIN pages ON pages.id = page_id WHERE conversation_id = ?
                     UNION SELECT model FROM sequences WHERE conversation_id = ?
                 ) ORDER BY is_this DESC LIMIT 1"""
        with self.read() as db:
            row = db.execute(sql, (model, conversation_id, conversation_id)).fetchone()
        return row is not None and not row["is_this"]

    def written_today(self) -> int:
        """Return the bytes that were written to disk today, by all processes."""
        with self.read() as db:
            row = db.execute("SELECT nbytes FROM written WHERE day = ?", (self._today,)).fetchone()
        return row["nbytes"] if row else 0

    def model_digest(self, path: str, fingerprint: str) -> str | None:
        """Return the digest of the model at `path` that was remembered with the same `fingerprint`."""
        sql = "SELECT digest FROM models WHERE path = ? AND fingerprint = ?"
        with self.read() as db:
            row = db.execute(sql, (path, fingerprint)).fetchone()
        return row["digest"] if row else None

    # Keeping.

    def put_page(self, page: NewPage) -> int:
        """Store a page, in place of one that is there, and note whose it is.

        A conversation also has the pages that it was read behind. One that another one has as well stays, but
        for one with more bits; so does one that was read for no conversation, where another such has fewer.
        Returns the bytes that this wrote to disk; 0 where the page is not written.
        """
        with self.write() as db:
            self._settle_times(db)
            row = db.execute("SELECT id, bits FROM pages WHERE key = ?", (page.key,)).fetchone()
            is_new = row is None or row["bits"] < page.bits
            if not is_new and (row["bits"] == page.bits or page.conversation_id > 0):
                is_new = not _is_of_others(db, row["id"], page)
            if is_new:
                self._write_page(db, page, None if row is None else row["id"])
            _note_use(db, page)
            return self.count_written(db, len(page.blob)) if is_new else 0

    def put_sequence(self, sequence: StoredSequence) -> int:
        """Note whose the pages are that are stored of a sequence, and keep its manifest in place of the last.

        Of no conversation, and of one whose manifest is empty, only the pages are noted. Returns the bytes
        that this wrote to disk.
        """
        conversation_id = max(sequence.conversation_id, 0)
        keys = b"".join(sequence.keys)
        sql = f"""{_WANTED} INSERT OR IGNORE INTO page_uses
                  SELECT :conversation_id, id FROM wanted JOIN pages USING (key)"""
        with self.write() as db:
            self._settle_times(db)
            db.execute(sql, {"keys": keys, "conversation_id": conversation_id})
            if not conversation_id or not sequence.manifest:
                return 0
            ((sequence_id,),) = db.execute(
                """INSERT INTO sequences (conversation_id, model, num_tokens, nbytes, last_used)
                   VALUES (?, ?, ?, ?, ?) ON CONFLICT (conversation_id, model) DO UPDATE SET
                   num_tokens = excluded.num_tokens, nbytes = excluded.nbytes, last_used = excluded.last_used
                   RETURNING id""",
                (conversation_id, sequence.model, sequence.num_tokens, len(sequence.manifest), self._now),
            ).fetchall()
            row = (sequence_id, FILLER, keys, sequence.manifest)
            db.execute("INSERT OR REPLACE INTO manifests VALUES (?, ?, ?, ?)", row)
            return self.count_written(db, len(keys) + len(sequence.manifest))

    def touch(self, keys: Collection[bytes]) -> None:
        """Note that pages were used now; those that were used a moment ago are left as they are."""
        sql = f"""{_WANTED} SELECT id FROM wanted JOIN pages USING (key)
                  WHERE last_used NOT BETWEEN :now - {TOUCH_AFTER_MS} AND :now + {AHEAD_MS}"""
        values = {"keys": b"".join(keys), "now": self._now}
        with self.read() as db:
            if db.execute(f"{sql} LIMIT 1", values).fetchone() is None:
                return
        with self.write() as db:
            db.execute(f"UPDATE pages SET last_used = :now WHERE id IN ({sql})", values)
            self._settle_times(db)

    def touch_sequence(self, conversation_id: int, model: str) -> None:
        """Note that a manifest was used now, as `touch` does."""
        sql = """UPDATE sequences SET last_used = ? WHERE conversation_id = ? AND model = ?"""
        with self.write() as db:
            db.execute(sql, (self._now, conversation_id, model))

    def drop_page(self, key: bytes) -> bool:
        """Delete a page; return whether it was there."""
        with self.write() as db:
            return db.execute("DELETE FROM pages WHERE key = ?", (key,)).rowcount > 0

    def drop_sequence(self, conversation_id: int, model: str) -> bool:
        """Delete a manifest; return whether it was there. The pages stay noted as the conversation's."""
        sql = "DELETE FROM sequences WHERE conversation_id = ? AND model = ?"
        with self.write() as db:
            return db.execute(sql, (conversation_id, model)).rowcount > 0

    def pin(self, conversation_id: int, pinned: bool) -> None:
        """Have the pages of a conversation evicted last, or no longer so."""
        sql = (
            "INSERT OR IGNORE INTO pins VALUES (?)"
            if pinned
            else "DELETE FROM pins WHERE conversation_id = ?"
        )
        with self.write() as db:
            db.execute(sql, (conversation_id,))

    def remember_model(self, path: str, fingerprint: str, digest: str) -> None:
        """Remember the digest of the model at `path`, in place of an earlier one."""
        with self.write() as db:
            db.execute("INSERT OR REPLACE INTO models VALUES (?, ?, ?)", (path, fingerprint, digest))

    def count_written(self, db: sqlite_utils.Database, nbytes: int) -> int:
        """Count, in a transaction, bytes that it writes, and forget the days before; return them, twice."""
        written = WRITTEN_TIMES * nbytes
        db.execute("DELETE FROM written WHERE day <> ?", (self._today,))
        sql = "INSERT INTO written VALUES (?, ?) ON CONFLICT DO UPDATE SET nbytes = nbytes + excluded.nbytes"
        db.execute(sql, (self._today, written))
        return written

    @property
    def _now(self) -> int:
        return round(self._clock() * 1000)

    @property
    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock()).date().isoformat()

    def _settle_times(self, db: sqlite_utils.Database) -> None:
        """Move what was used in the future to just before now, in its order: the clock was set back.

        What is used from now on would be evicted before it, all of it at once where the limit is reached.
        """
        now, tables = self._now, ("pages", "sequences")
        used = [db.execute(f"SELECT max(last_used) FROM {table}").fetchone()[0] or 0 for table in tables]
        if max(used) <= now + AHEAD_MS:
            return
        for table in tables:
            sql = f"UPDATE {table} SET last_used = last_used - ? WHERE last_used > ?"
            db.execute(sql, (max(used) - now + 1, now + AHEAD_MS))

    def _check_place(self) -> None:
        if not self.is_in_place:
            raise StoreReplacedError(f"{self.path} was deleted or replaced while it was open.")

    def _write_page(self, db: sqlite_utils.Database, page: NewPage, page_id: int | None) -> None:
        ((page_id,),) = db.execute(
            """INSERT INTO pages (id, key, parent, model, position, num_tokens, bits, nbytes, last_used)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
               bits = excluded.bits, nbytes = excluded.nbytes, last_used = excluded.last_used RETURNING id""",
            (
                page_id,
                page.key,
                page.parent,
                page.model,
                page.position,
                page.num_tokens,
                page.bits,
                len(page.blob),
                self._now,
            ),
        ).fetchall()
        db.execute("INSERT OR REPLACE INTO page_blobs VALUES (?, ?, ?)", (page_id, FILLER, page.blob))


def _is_of_others(db: sqlite_utils.Database, page_id: int, page: NewPage) -> bool:
    """Return whether another conversation has a stored page than the one that a new one is of."""
    sql = "SELECT 1 FROM page_uses WHERE page_id = ? AND conversation_id <> ?"
    return db.execute(sql, (page_id, max(page.conversation_id, 0))).fetchone() is not None


def _note_use(db: sqlite_utils.Database, page: NewPage) -> None:
    """Note a page and those before it as a conversation's, up to the first one that is."""
    sql = """WITH RECURSIVE chain (id, parent) AS (
            SELECT id, parent FROM pages WHERE key = :key
            UNION SELECT pages.id, pages.parent FROM chain JOIN pages ON pages.key = chain.parent
            WHERE NOT EXISTS (SELECT 1 FROM page_uses WHERE conversation_id = :conversation_id
                              AND page_id = pages.id)
        ) INSERT OR IGNORE INTO page_uses SELECT :conversation_id, id FROM chain"""
    db.execute(sql, {"key": page.key, "conversation_id": max(page.conversation_id, 0)})


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
