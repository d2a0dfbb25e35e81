"""The schema of `prefixes.db` and the settings of its file.

SQLite copies what lies in its own pages from one to another and leaves remains there, secure delete or not.
So nothing that can be turned into words may lie in such a page: blobs stand behind a filler of a whole page,
which pushes them into pages of their own. Free ones of these keep their content until they are used again or
cut off the file.
"""

from __future__ import annotations

import sqlite_utils
from sqlite_utils import Migrations

from app.store.connection import StoreOptions

PAGE_NBYTES = 16_384
OPTIONS = StoreOptions(
    synchronous="NORMAL",
    # Overwriting 400 MB with zeros takes 0.6 s and wears the disk; cutting them off is needed anyway.
    secure_delete="FAST",
    page_nbytes=PAGE_NBYTES,
    gives_space_back=True,
    copies_before_migration=False,
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
