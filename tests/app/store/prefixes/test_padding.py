"""Rows end with a page of the file, whatever they hold, as SQLite itself tells of its pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
import sqlite_utils
from hypothesis import given
from hypothesis import strategies as st

from app.store.prefixes.padding import FILLER, measure_usable_nbytes, padding_nbytes

USABLE_NBYTES = 16_384
BLOBS = "CREATE TABLE blobs (id INTEGER PRIMARY KEY, filler, one, two, padding)"


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute(f"PRAGMA page_size={USABLE_NBYTES}")
        conn.execute(BLOBS)
        try:
            conn.execute("SELECT * FROM dbstat").fetchall()
        except sqlite3.OperationalError:
            pytest.skip("this build of SQLite does not tell what its pages hold")
        yield conn


sizes = (
    st.integers(0, 200) | st.integers(8_000, 8_400) | st.integers(16_000, 40_000) | st.integers(0, 900_000)
)


@given(one=sizes, two=sizes)
def test_only_the_filler_lies_in_a_page_of_rows_and_all_other_pages_are_full(
    db: sqlite3.Connection, one: int, two: int
) -> None:
    padding = padding_nbytes(USABLE_NBYTES, len(FILLER), one, two)
    db.execute("DELETE FROM blobs")
    row = (FILLER, one, two, padding)
    db.execute("INSERT INTO blobs VALUES (1, ?, zeroblob(?), zeroblob(?), zeroblob(?))", row)
    sql = "SELECT payload, unused FROM dbstat WHERE name = 'blobs' AND pagetype = ?"
    ((local_nbytes, _),) = db.execute(sql, ("leaf",))
    assert local_nbytes <= len(FILLER)
    pages = db.execute(sql, ("overflow",)).fetchall()
    assert pages
    assert {unused for _, unused in pages} == {0}


@pytest.mark.parametrize("reserved_nbytes", [0, 12, 255])
def test_what_sqlite_uses_of_a_page_is_measured(reserved_nbytes: int) -> None:
    with closing(sqlite_utils.Database(memory=True)) as db:
        db.execute(f"PRAGMA page_size={USABLE_NBYTES}")
        db.execute("PRAGMA user_version=1")
        content = bytearray(db.conn.serialize())
        # The file format has the reserved bytes here, and the end of the first page's cells there.
        content[20] = reserved_nbytes
        content[105:107] = (USABLE_NBYTES - reserved_nbytes).to_bytes(2, "big")
        db.conn.deserialize(bytes(content))
        db.execute(BLOBS)
        assert measure_usable_nbytes(db) == USABLE_NBYTES - reserved_nbytes
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
