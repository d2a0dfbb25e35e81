"""The copy of a store that is made before a migration changes it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.durable_files import dated_name

MAX_COPIES = 3


def copy_before_migration(conn: sqlite3.Connection, path: Path, migration: str) -> Path:
    """Copy the store to a dated name beside it, keep the newest `MAX_COPIES`, and return the new copy."""
    copy = dated_name(path, f"before-{migration.partition('_')[0]}")
    unfinished = copy.with_name(f"{copy.name}.new")
    try:
        unfinished.touch(mode=0o600)
        target = sqlite3.connect(unfinished)
        try:
            conn.backup(target)
        finally:
            target.close()
        unfinished.rename(copy)
    finally:
        unfinished.unlink(missing_ok=True)
    for old in _copies(path)[:-MAX_COPIES]:
        old.unlink()
    return copy


def _copies(path: Path) -> list[Path]:
    copies = path.parent.glob(f"{path.name}.before-*")
    return sorted(copies, key=lambda copy: (copy.stat().st_mtime_ns, copy.name))
