"""Opening `conversations.db` at the start of the program, whatever has happened to it since the last time."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from app.store.connection import connect, connect_for_reading, files_of, rescued_file, suspicion_of
from app.store.conversations import ConversationStore
from app.store.errors import DamagedStoreError, store_errors
from app.store.migrations import CONVERSATIONS
from app.store.rescue import Rescue, rescue_store

log = logging.getLogger(__name__)

ALWAYS_CHECKED_NBYTES = 16_000_000
_LOG_MAGIC = (0x377F0682, 0x377F0683)


@dataclass(frozen=True)
class OpenReport:
    """What the user must know about the opening; nothing when all was well.

    Attributes:
        moved_aside: where a damaged file is now.
        message: one or two sentences about it.
    """

    moved_aside: Path | None = None
    message: str | None = None


def open_store(path: Path) -> tuple[ConversationStore, OpenReport]:
    """Open the conversations; a damaged file is moved aside and what can be read of it is read over.

    A newer schema, a locked file, a full disk or a lack of rights is raised as a `StoreError`, and the file
    is left as it is.
    """
    path = path.resolve()
    with store_errors(path):
        try:
            _check(path)
            return ConversationStore.open(path), OpenReport()
        except DamagedStoreError as error:
            log.error("%s is damaged: %s", path, error.__cause__ or error)
        rescue = rescue_store(path, CONVERSATIONS)
        log.error("moved it to %s, rescued %d messages", rescue.moved_aside, rescue.num_messages)
    return ConversationStore.open(path), OpenReport(rescue.moved_aside, _message(rescue))


def _check(path: Path) -> None:
    """Raise a `DamagedStoreError` when the file cannot be what the store wrote.

    All pages of a large file are read only after an unclean end, which leaves the log behind, or when the
    file showed damage in use: 200 MB take 0.7 s from the cache of the system, 7 s from a slow disk.
    """
    if rescued_file(path).exists():
        raise DamagedStoreError(f"The rescue of {path} was cut off.")
    log_file = files_of(path)[0]
    if not path.is_file() or not path.stat().st_size:
        return
    unclean = log_file.exists()
    if unclean and not _is_log(log_file):
        raise DamagedStoreError(f"{log_file} is damaged.")
    suspected = suspicion_of(path)
    if unclean or suspected.exists() or path.stat().st_size <= ALWAYS_CHECKED_NBYTES:
        with store_errors(path):
            _check_pages(path)
        suspected.unlink(missing_ok=True)


def _check_pages(path: Path) -> None:
    # SQLite checks the constraints only where it may write, and there clears the log away: the second
    # connection is for a file whose structure is sound.
    for connection, check in (
        (connect_for_reading, "quick_check"),
        (lambda path: connect(path).conn, "integrity_check"),
    ):
        with closing(connection(path)) as conn:
            (result,) = conn.execute(f"PRAGMA {check}(1)").fetchone()
        if result != "ok":
            raise DamagedStoreError(f"{path} is damaged: {result}.")


def _is_log(log_file: Path) -> bool:
    with log_file.open("rb") as file:
        magic = file.read(4)
    # An empty log is what SQLite leaves when it was killed between two transactions.
    return not magic or int.from_bytes(magic, "big") in _LOG_MAGIC


def _message(rescue: Rescue) -> str:
    kept = f"The damaged file is kept as {rescue.moved_aside}."
    if rescue.num_messages:
        return f"Your conversations were damaged. {rescue.num_messages:,} messages could be rescued. {kept}"
    return f"Your conversations were damaged and no message could be rescued. {kept}"
