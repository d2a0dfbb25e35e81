"""A thread's connection to a SQLite file: created whole or not at all, migrated, with short transactions."""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlite_utils
from sqlite_utils import Migrations

from app.durable_files import sync_folder
from app.store.backups import copy_before_migration
from app.store.errors import DamagedStoreError, NewerSchemaError, store_errors
from app.store.text import readable

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class StoreOptions:
    """What distinguishes one file from another.

    Attributes:
        synchronous: SQLite's setting; with `FULL` nothing that was written is lost when the power fails.
        page_nbytes: of a page of a new file.
        gives_space_back: whether free pages of a new file can be cut off it.
        copies_before_migration: whether a copy of the file is kept when it is migrated.
        writes_once: whether a transaction stays in memory until it is committed, however large it is; what
            it overwrites or cuts off again is then never written.
    """

    synchronous: str = "FULL"
    page_nbytes: int = 4096
    gives_space_back: bool = False
    copies_before_migration: bool = True
    writes_once: bool = False


DEFAULT_OPTIONS = StoreOptions()


class StoreConnection:
    """A connection that belongs to the thread that opened it; its errors are all `StoreError`s.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, db: sqlite_utils.Database) -> None:
        self.path = path
        self._db = db

    @classmethod
    def open(
        cls, path: Path, migrations: Migrations, options: StoreOptions = DEFAULT_OPTIONS
    ) -> StoreConnection:
        """Open `path`, creating it when it is missing and migrating it when it is old."""
        path = path.resolve()
        with _guarded(path):
            if not path.exists():
                if files_of(path)[0].exists() or rescued_file(path).exists():
                    raise DamagedStoreError(f"{path} is missing, but not what belongs to it.")
                path.parent.mkdir(parents=True, exist_ok=True)
                create_file(path, migrations, options=options)
            if path.is_dir() or path.stat().st_size == 0:
                raise DamagedStoreError(f"{path} is not a database.")
            db = connect(path, options)
            try:
                _check_origin(db, path, migrations)
                use_log(db)
                _migrate(db, path, migrations, options)
            except BaseException:
                db.close()
                raise
        return cls(path, db)

    @contextmanager
    def read(self) -> Iterator[sqlite_utils.Database]:
        """One unchanging view of the file for all queries inside."""
        with _guarded(self.path):
            if self._db.conn.in_transaction:
                yield self._db
                return
            self._db.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.rollback()

    @contextmanager
    def write(self) -> Iterator[sqlite_utils.Database]:
        """All changes inside or none of them; waits up to `BUSY_TIMEOUT_S` for another writer."""
        with _guarded(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.commit()
            finally:
                self._db.rollback()

    def rewrite(self) -> None:
        """Write the file anew, without the remains that SQLite leaves in pages of rows, secure delete or not.

        Takes about a second for 200 MB, and as much room on the disk. Nobody else may read meanwhile.
        """
        with _guarded(self.path):
            self._db.execute("VACUUM")

    def empty_log(self, timeout_s: float = BUSY_TIMEOUT_S) -> bool:
        """Write SQLite's log of changes back into the file, so that it holds no text that was deleted.

        Returns False where somebody read what is only in the log, or wrote, for `timeout_s`. Others wait with
        their writing for as long.
        """
        with _guarded(self.path):
            self._db.execute(f"PRAGMA busy_timeout={round(timeout_s * 1000)}")
            try:
                (is_busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._db.execute(f"PRAGMA busy_timeout={round(BUSY_TIMEOUT_S * 1000)}")
        return not is_busy

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with _guarded(self.path):
            self._db.close()


def connect(path: Path, options: StoreOptions = DEFAULT_OPTIONS) -> sqlite_utils.Database:
    """Return a connection with the settings that all need; it changes nothing in the file by itself."""
    conn = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    try:
        conn.row_factory = sqlite3.Row
        conn.text_factory = readable
        for pragma in _pragmas(options):
            conn.execute(f"PRAGMA {pragma}")
        return sqlite_utils.Database(conn, execute_plugins=False)
    except BaseException:
        conn.close()
        raise


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that cannot change the file, not even by clearing its log away."""
    conn = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)
    conn.row_factory = sqlite3.Row
    conn.text_factory = readable
    return conn


def use_log(db: sqlite_utils.Database) -> None:
    """Let readers and a writer work at once; the file remembers it."""
    (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":
        log.warning("the journal mode stays %s: the folder of the store does not support WAL", mode)


def create_file(
    path: Path,
    migrations: Migrations,
    stop_before: str | None = None,
    options: StoreOptions = DEFAULT_OPTIONS,
) -> None:
    """Create an empty store, which appears under its name only when it is complete; an existing one stays."""
    draft = path.with_name(f"{path.name}.new-{os.getpid()}-{threading.get_ident()}")
    try:
        draft.touch(mode=0o600)
        db = connect(draft, options)
        try:
            # Nobody sees the draft before it is whole: one flush at the end is enough.
            db.execute("PRAGMA synchronous=OFF")
            # In a file that has tables, these two would wait for a writer and change nothing.
            db.execute(f"PRAGMA page_size={options.page_nbytes}")
            db.execute(f"PRAGMA auto_vacuum={'INCREMENTAL' if options.gives_space_back else 'NONE'}")
            use_log(db)
            migrations.apply(db, stop_before=stop_before)
        finally:
            db.close()
        _publish(draft, path)
    finally:
        delete_files(draft)


def files_of(path: Path) -> tuple[Path, Path, Path]:
    """Return SQLite's log and shared memory beside `path`, and `path` itself."""
    return path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm"), path


def delete_files(path: Path) -> None:
    """Delete a database with its log and shared memory, as far as they exist."""
    for part in files_of(path):
        part.unlink(missing_ok=True)


def suspicion_of(path: Path) -> Path:
    """Return the empty file that asks the next start to check all of `path`, which showed damage in use."""
    return path.with_name(f"{path.name}-suspect")


def rescued_file(path: Path) -> Path:
    """Return the name of a new store that is to take the place of the damaged one at `path`."""
    return path.with_name(f"{path.name}.rescued")


def migration_names(migrations: Migrations) -> list[str]:
    """Return the names of all migrations that this version of the program has, in order."""
    with contextlib.closing(sqlite_utils.Database(memory=True)) as blank:
        return [migration.name for migration in migrations.pending(blank)]


def refuse_newer(path: Path, applied: set[str], migrations: Migrations) -> None:
    """Raise a `NewerSchemaError` when a newer version of the program has written `path`."""
    if applied - set(migration_names(migrations)):
        raise NewerSchemaError(
            f"{path} was written by a newer version of Octavo. Install that version to open it; "
            "nothing was changed."
        )


def _pragmas(options: StoreOptions) -> Iterator[str]:
    yield "foreign_keys=ON"
    yield "secure_delete=ON"
    yield "cell_size_check=ON"
    yield f"synchronous={options.synchronous}"
    yield f"cache_spill={'OFF' if options.writes_once else 'ON'}"


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    try:
        with store_errors(path):
            yield
    except DamagedStoreError as error:
        log.error("%s: %s", path, error.__cause__ or error)
        with contextlib.suppress(OSError):
            suspicion_of(path).touch()
        raise


def _check_origin(db: sqlite_utils.Database, path: Path, migrations: Migrations) -> None:
    applied = {migration.name for migration in migrations.applied(db)}
    refuse_newer(path, applied, migrations)
    if not applied and db.table_names():
        raise DamagedStoreError(f"{path} is a database of another program.")


def _migrate(db: sqlite_utils.Database, path: Path, migrations: Migrations, options: StoreOptions) -> None:
    pending = migrations.pending(db)
    if not pending:
        return
    if migrations.applied(db) and options.copies_before_migration:
        copy = copy_before_migration(db.conn, path, pending[0].name)
        log.info("copied %s to %s before it is migrated", path, copy)
    # A migration that rebuilds a table would otherwise delete the rows that refer to it.
    db.execute("PRAGMA foreign_keys=OFF")
    migrations.apply(db)
    db.execute("PRAGMA foreign_keys=ON")


def _publish(draft: Path, path: Path) -> None:
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:
        # Some file systems have no hard links.
        draft.rename(path)
    sync_folder(path.parent)
