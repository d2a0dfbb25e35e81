"""The schema of `prefixes.db` and the settings of its file."""

from __future__ import annotations

import sqlite_utils
from sqlite_utils import Migrations

from app.store.connection import StoreOptions
from app.store.prefixes.padding import measure_usable_nbytes

PAGE_NBYTES = 16_384
OPTIONS = StoreOptions(
    synchronous="NORMAL",
    # Overwriting 400 MB with zeros takes 0.6 s and wears the disk; cutting them off is needed anyway.
    secure_delete="FAST",
    page_nbytes=PAGE_NBYTES,
    gives_space_back=True,
    copies_before_migration=False,
)

PREFIXES = Migrations("prefixes")


@PREFIXES(name="001_prefixes")
def _prefixes(db: sqlite_utils.Database) -> None:
    # What can be turned into words is only in tables with a filler and padding: see `padding`.
    # Times are milliseconds since 1970. Blobs have tables of their own: what lists pages never reads them.
    db.executescript("""
        CREATE TABLE pages (
            id INTEGER PRIMARY KEY,
            key BLOB NOT NULL UNIQUE,
            parent BLOB NOT NULL,
            model TEXT NOT NULL,
            position INTEGER NOT NULL,
            num_tokens INTEGER NOT NULL,
            bits REAL NOT NULL,
            nbytes INTEGER NOT NULL,
            last_used INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE page_blobs (
            page_id INTEGER PRIMARY KEY REFERENCES pages (id) ON DELETE CASCADE,
            filler BLOB NOT NULL,
            blob BLOB NOT NULL,
            padding BLOB NOT NULL
        ) STRICT;

        CREATE TABLE page_uses (
            conversation_id INTEGER NOT NULL,
            page_id INTEGER NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
            PRIMARY KEY (conversation_id, page_id)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE sequences (
            id INTEGER PRIMARY KEY,
            conversation_id INTEGER NOT NULL,
            model TEXT NOT NULL,
            num_tokens INTEGER NOT NULL,
            nbytes INTEGER NOT NULL,
            last_used INTEGER NOT NULL,
            UNIQUE (conversation_id, model)
        ) STRICT;

        CREATE TABLE manifests (
            sequence_id INTEGER PRIMARY KEY REFERENCES sequences (id) ON DELETE CASCADE,
            filler BLOB NOT NULL,
            keys BLOB NOT NULL,
            manifest BLOB NOT NULL,
            padding BLOB NOT NULL
        ) STRICT;

        CREATE TABLE pins (conversation_id INTEGER PRIMARY KEY) STRICT;

        CREATE TABLE models (
            path TEXT PRIMARY KEY,
            fingerprint TEXT NOT NULL,
            digest TEXT NOT NULL
        ) STRICT;

        CREATE TABLE written (day TEXT PRIMARY KEY, nbytes INTEGER NOT NULL) STRICT;

        CREATE INDEX pages_by_parent ON pages (parent);
        CREATE INDEX pages_by_last_use ON pages (last_used, position DESC);
        CREATE INDEX page_uses_by_page ON page_uses (page_id);
        CREATE INDEX sequences_by_last_use ON sequences (last_used);
    """)
    db.execute(f"PRAGMA user_version={measure_usable_nbytes(db)}")


def usable_nbytes(db: sqlite_utils.Database) -> int:
    """Return how many bytes of a page of the file SQLite uses, as measured when it was made."""
    (nbytes,) = db.execute("PRAGMA user_version").fetchone()
    return int(nbytes)
