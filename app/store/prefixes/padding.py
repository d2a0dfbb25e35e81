"""Rows whose blobs leave no remains in a SQLite file, once its free pages are cut off.

SQLite leaves remains of what it deletes: in pages of rows, which it copies from one to another (secure
delete or not), and in free pages. Of a page that is used again, the end of a blob overwrites only the
beginning. So a filler before each blob pushes it into pages of its own, and padding behind it fills the last
one of these.
"""

from __future__ import annotations

import sqlite_utils

FILLER = b"Octavo prefixes\n" * 128
"""What of a row lies in a page of rows; also tells a damaged file from one of another program."""

_LOCAL_LIMIT_NBYTES = 35
"""A row that is longer than a page without so many bytes goes on in other pages."""


def padding_nbytes(usable_nbytes: int, *blobs_nbytes: int) -> int:
    """Return how many bytes behind the blobs of a row make it end with the end of a page.

    Then no more than the filler lies in a page of rows. See SQLite's file format, sections 1.6 and 2.1.

    Args:
        usable_nbytes: of a page of the file.
        blobs_nbytes: of the columns between the number of the row and its padding.
    """
    whole = usable_nbytes - 4
    local = (usable_nbytes - 12) * 32 // 255 - 23
    # A row begins with the length of its header, a zero for its number and the lengths of its blobs.
    before = 2 + sum(blobs_nbytes) + sum(map(_length_nbytes, blobs_nbytes))
    shortest = [(local - before - length) % whole for length in (1, 2, 3)]
    fitting = (
        padding + more
        for more in (0, whole)
        for length, padding in enumerate(shortest, start=1)
        if _length_nbytes(padding + more) == length
    )
    return next(fitting)


def measure_usable_nbytes(db: sqlite_utils.Database) -> int:
    """Return how many bytes of a page SQLite uses in this file, which is new; some builds reserve a few."""
    (page_nbytes,) = db.execute("PRAGMA page_size").fetchone()
    # Beside its content, a row has the length of its header and three bytes for the length of its content.
    content_nbytes = page_nbytes - _LOCAL_LIMIT_NBYTES - 4
    db.execute("CREATE TABLE probe (content BLOB)")
    num_pages = _num_pages(db)
    while True:
        db.execute("INSERT INTO probe VALUES (zeroblob(?))", (content_nbytes,))
        is_in_one_page = _num_pages(db) == num_pages
        db.execute("DELETE FROM probe")
        if is_in_one_page:
            db.execute("DROP TABLE probe")
            return int(content_nbytes) + 4 + _LOCAL_LIMIT_NBYTES
        content_nbytes -= 1


def _num_pages(db: sqlite_utils.Database) -> int:
    (all_pages,) = db.execute("PRAGMA page_count").fetchone()
    (free_pages,) = db.execute("PRAGMA freelist_count").fetchone()
    return int(all_pages - free_pages)


def _length_nbytes(blob_nbytes: int) -> int:
    """Return what the length of a blob takes in a row: SQLite's variable integers hold seven bits a byte."""
    return -(-(2 * blob_nbytes + 12).bit_length() // 7)
