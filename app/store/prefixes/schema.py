"""The schema of `prefixes.db` and the settings of its file.

SQLite leaves remains of what was deleted in pages of rows, which it copies from one to another, secure delete
or not. So nothing that can be turned into words lies there: a filler of a whole page before each blob pushes
it into pages of its own, and these are overwritten when they become free.
"""

from __future__ import annotations

import sqlite_utils
from sqlite_utils import Migrations

from app.store.connection import StoreOptions

PAGE_NBYTES = 16_384
OPTIONS = StoreOptions(
    synchronous="NORMAL",
    page_nbytes=PAGE_NBYTES,
    gives_space_back=True,
    copies_before_migration=False,
    writes_once=True,
)

FILLER = b"Octavo prefixes\n" * (PAGE_NBYTES // 16)
"""Stands before each blob; also tells a damaged file from one of another program."""

PREFIXES = Migrations("prefixes")


@PREFIXES(name="001_prefixes")
def _prefixes(db: sqlite_utils.Database) -> None:
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
            blob BLOB NOT NULL
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
            manifest BLOB NOT NULL
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
