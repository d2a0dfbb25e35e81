"""Opening `prefixes.db` whatever has happened to it: nothing in it is worth a rescue."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from app.durable_files import dated_name, sync_folder
from app.store.connection import (
    BUSY_TIMEOUT_S,
    StoreConnection,
    create_file,
    delete_files,
    files_of,
    suspicion_of,
)
from app.store.errors import (
    DamagedStoreError,
    StorageFullError,
    StoreError,
    StoreLockedError,
    store_errors,
)
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.schema import FILLER, OPTIONS, PREFIXES

log = logging.getLogger(__name__)

CHECKED_TABLES = ("pages", "page_uses", "sequences", "pins", "models", "written")
"""Those without blobs: 5,000 pages take 10 ms."""
_KEPT_TABLES = ("pins", "models", "written")
_OWN_MARKS = (FILLER[:64], b"CREATE TABLE page_blobs")
_PIECE_NBYTES = 2**20


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
    path = path.resolve()
    with _alone(path):
        if not path.exists():
            # SQLite would write a log that lies there into the new file.
            delete_files(path)
        try:
            opening = PrefixOpening(_open_checked(path, clock))
            # One that was replaced in use can have looked damaged to those who had it open.
            suspicion_of(path).unlink(missing_ok=True)
            return opening
        except DamagedStoreError as error:
            log.error("%s is begun anew: %s", path, error.__cause__ or error)
        problem = _remove(path)
        try:
            return PrefixOpening(PrefixDatabase.open(path, clock), problem)
        except DamagedStoreError as error:
            raise StoreError(
                f"A new {path} was damaged at once: the disk may be full or broken. Nothing is saved in the "
                "prefix cache until it works."
            ) from error


def begin_anew(database: PrefixDatabase) -> bool:
    """Close a database that showed damage in use, and delete its files, unless another one is in its place.

    `open_prefixes` then begins a new one. The words that were in the damaged file are gone with it. Returns
    whether it was still in its place.
    """
    with _alone(database.path):
        is_in_place = database.is_in_place
        with contextlib.suppress(StoreError):
            database.close()
        if is_in_place:
            _delete(database.path)
        return is_in_place


def clear(database: PrefixDatabase) -> None:
    """Close a database and put an empty one in its place, with the pins and what is remembered of models.

    All words in it are gone at once, however large it was, and so is its space, though others may have it
    open for long. Every other connection to it, in this process or another one, says `StoreReplacedError` at
    its next use. `open_prefixes` opens the new one.
    """
    path = database.path
    draft = path.with_name(f"{path.name}.empty")
    with _alone(path):
        with contextlib.closing(database), database.read() as db:
            rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in _KEPT_TABLES}
        try:
            delete_files(draft)
            with store_errors(draft):
                _write_draft(draft, rows)
            _put_in_place(draft, path)
        except StorageFullError:
            # It may be the disk's last bytes that are to be made free.
            _delete(path)
        finally:
            delete_files(draft)
            suspicion_of(draft).unlink(missing_ok=True)
        sync_folder(path.parent)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from opening or replacing the file meanwhile.

    One that has opened it before another takes its place could otherwise open the other one's log with it.
    """
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(f"{path}.lock", timeout=BUSY_TIMEOUT_S, mode=0o600)
        try:
            lock.acquire()
        except filelock.Timeout as error:
            raise StoreLockedError(f"Another program is using {path}. Close it and try again.") from error
        try:
            yield
        finally:
            lock.release()


def _open_checked(path: Path, clock: Callable[[], float]) -> PrefixDatabase:
    database = PrefixDatabase.open(path, clock)
    try:
        with database.read() as db:
            for table in CHECKED_TABLES:
                (result,) = db.execute(f"PRAGMA integrity_check({table})").fetchone()
                if result != "ok":
                    raise DamagedStoreError(f"{path} is damaged: {result}.")
    except BaseException:
        database.close()
        raise
    return database


def _write_draft(draft: Path, rows: dict[str, list[tuple[object, ...]]]) -> None:
    create_file(draft, PREFIXES, options=OPTIONS)
    connection = StoreConnection.open(draft, PREFIXES, OPTIONS)
    with contextlib.closing(connection), connection.write() as db:
        for name, content in rows.items():
            for row in content:
                db.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", tuple(row))


def _put_in_place(draft: Path, path: Path) -> None:
    # Whoever opens and closes a file takes the locks of this process from it: nothing may fail from here on.
    with path.open("r+b") as former:
        _delete(path, except_file=True)
        draft.replace(path)
        former.truncate(0)


def _remove(path: Path) -> str:
    """Delete a damaged file, put aside what is not Octavo's; return a sentence about it."""
    if not path.is_dir() and (not path.stat().st_size or _is_own(path)):
        _delete(path)
        return (
            "The file of the prefix cache was damaged. It has been begun anew: your conversations are "
            "complete, their text is read again when it is needed."
        )
    aside = dated_name(path, "foreign")
    log_file, shared_memory, _ = files_of(path)
    if log_file.is_file():
        # It goes first: beside another file of this name SQLite would write its content into that one. And it
        # is copied: this or another process may still write words into the one that it has open.
        copy = files_of(aside)[0]
        shutil.copyfile(log_file, copy)
        log_file.unlink()
        if _has_own_mark(copy):
            copy.unlink()
    shared_memory.unlink(missing_ok=True)
    path.rename(aside)
    suspicion_of(path).unlink(missing_ok=True)
    sync_folder(path.parent)
    return f"A file that is not Octavo's was in the place of the prefix cache. It was renamed to {aside}."


def _is_own(path: Path) -> bool:
    return any(_has_own_mark(part) for part in files_of(path) if part.is_file())


def _has_own_mark(file: Path) -> bool:
    return any(mark in piece for piece in _pieces(file) for mark in _OWN_MARKS)


def _pieces(file: Path) -> Iterator[bytes]:
    """Yield the content with overlaps that are longer than any mark."""
    last = b""
    with file.open("rb") as content:
        while piece := content.read(_PIECE_NBYTES):
            yield last + piece
            last = piece[-len(FILLER) :]


def _delete(path: Path, except_file: bool = False) -> None:
    log_file, shared_memory, file = files_of(path)
    for part in (log_file, shared_memory) if except_file else (log_file, shared_memory, file):
        part.unlink(missing_ok=True)
    suspicion_of(path).unlink(missing_ok=True)
