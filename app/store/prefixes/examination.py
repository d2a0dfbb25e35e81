"""Looking at `prefixes.db` without changing anything, whoever uses it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import sqlite_utils

from app.store.connection import connect_for_reading, refuse_newer
from app.store.errors import DamagedStoreError, store_errors
from app.store.prefixes.recovery import CHECKED_TABLES
from app.store.prefixes.schema import PREFIXES


def count_sound_pages(path: Path) -> int:
    """Return how many pages are stored in the file; their content is checked when they are used.

    Raises:
        DamagedStoreError: it is damaged, or of another program.
        StoreError: it cannot be looked at, or a newer version of Octavo has written it.
    """
    with store_errors(path), closing(connect_for_reading(path)) as conn:
        database = sqlite_utils.Database(conn, execute_plugins=False)
        applied = {one.name for one in PREFIXES.applied(database)}
        refuse_newer(path, applied, PREFIXES)
        if not applied:
            raise DamagedStoreError(f"{path} is a file of another program.")
        for table in CHECKED_TABLES:
            (result,) = conn.execute(f"PRAGMA integrity_check({table})").fetchone()
            if result != "ok":
                raise DamagedStoreError(f"{path} is damaged: {result}.")
        return int(database["pages"].count)
