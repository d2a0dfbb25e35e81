"""What can go wrong with a store, each as a sentence for the person at the keyboard."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.durable_files import FULL_DISK, NO_ACCESS
from engine.errors import OctavoError


class StoreError(OctavoError):
    """A store that could not be read or written."""


class NotFoundError(StoreError):
    """A conversation, message or attachment that does not exist, or no longer."""


class NewerSchemaError(StoreError):
    """A file that a newer version of the program has written."""


class DamagedStoreError(StoreError):
    """A file whose content is not what SQLite or the store wrote."""


class StoreLockedError(StoreError):
    """A file that another program keeps locked."""


class StoreReplacedError(StoreError):
    """A file that is not the one that was opened: it was deleted, or another one is in its place."""


class StorageFullError(StoreError):
    """No room for what was to be written; nothing of it was."""


class StoreAccessError(StoreError):
    """A file or folder that the user may not read or write."""


_ERROR_OF_PRIMARY_CODE: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_CORRUPT: DamagedStoreError,
    sqlite3.SQLITE_NOTADB: DamagedStoreError,
    sqlite3.SQLITE_BUSY: StoreLockedError,
    sqlite3.SQLITE_LOCKED: StoreLockedError,
    sqlite3.SQLITE_FULL: StorageFullError,
    sqlite3.SQLITE_READONLY: StoreAccessError,
    sqlite3.SQLITE_PERM: StoreAccessError,
    sqlite3.SQLITE_CANTOPEN: StoreAccessError,
}
# Quotas and size limits reach SQLite as write errors, not as a full disk.
_ERROR_OF_EXTENDED_CODE: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_IOERR_WRITE: StorageFullError,
    sqlite3.SQLITE_IOERR_SHMSIZE: StorageFullError,
    sqlite3.SQLITE_IOERR_SHORT_READ: DamagedStoreError,
}


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into a `StoreError` about `path`."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise _store_error(error, path) from error


def _store_error(error: Exception, path: Path) -> StoreError:
    kind = _error_type(error)
    if kind is StoreError:
        return StoreError(f"{path} could not be read or written ({error}).")
    return kind(_sentence(kind, path))


def _error_type(error: Exception) -> type[StoreError]:
    if isinstance(error, OSError):
        if error.errno in FULL_DISK:
            return StorageFullError
        return StoreAccessError if error.errno in NO_ACCESS else StoreError
    if isinstance(error, UnicodeDecodeError):
        # The names in a damaged schema.
        return DamagedStoreError
    code = getattr(error, "sqlite_errorcode", 0)
    return _ERROR_OF_EXTENDED_CODE.get(code) or _ERROR_OF_PRIMARY_CODE.get(code & 0xFF) or StoreError


def _sentence(kind: type[StoreError], path: Path) -> str:
    return {
        DamagedStoreError: f"{path} is damaged. Restart Octavo: it then rescues what can still be read.",
        StoreLockedError: f"Another program is using {path}. Close it and try again.",
        StorageFullError: f"{path} could not be saved: the disk is full or accepts no more data. "
        "Free some space and try again.",
        StoreAccessError: f"Octavo may not read or write {path}. Check the permissions of the folder.",
    }[kind]
