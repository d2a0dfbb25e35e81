"""Rows of a table whose tree is broken: pages that hold rows, but that nothing refers to any more.

In a copy of the file the root of the tree is replaced by a page that refers to them, so that SQLite itself
reads their rows. The layout of a page is in https://www.sqlite.org/fileformat2.html#b_tree_pages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from app.store.text import readable

PAGE_NBYTES = 4096
_ROW_PAGE, _INNER_PAGE = 0x0D, 0x05
_CHILDREN_AT_ONCE = 400


def stray_rows(copy: Path, root: int, sql: str) -> Iterator[sqlite3.Row]:
    """Yield what `sql` selects from the table with the root page `root`, for every page that holds rows.

    Rows of other tables come along, with their values in the wrong columns, and rows may come twice. `copy`
    is written to; it must have no log.
    """
    pages = _row_pages(copy)
    for start in range(0, len(pages), _CHILDREN_AT_ONCE):
        batch = pages[start : start + _CHILDREN_AT_ONCE]
        try:
            yield from _rows_below(copy, root, batch, sql)
        except sqlite3.DatabaseError:
            for page in batch:
                try:
                    yield from _rows_below(copy, root, [page], sql)
                except sqlite3.DatabaseError:
                    continue


def schema_offsets(content: bytes) -> list[int]:
    """Return where the pages of the schema begin in a whole file whose schema is one or two pages deep."""
    children = (_number(content, place, 4) for place in _places_of_children(content))
    return [0, *((child - 1) * PAGE_NBYTES for child in children)]


def moved_schema(content: bytes, num_pages: int) -> dict[int, bytes]:
    """Return the pages of the schema of a whole file, by where they go behind so many pages of another.

    The first page stays the first and refers to the others in their new places: another file may have rows
    where this one has its schema.
    """
    first, moved = bytearray(content[:PAGE_NBYTES]), {}
    for page, place in enumerate(_places_of_children(content), num_pages + 1):
        start = (_number(content, place, 4) - 1) * PAGE_NBYTES
        moved[(page - 1) * PAGE_NBYTES] = content[start : start + PAGE_NBYTES]
        first[place : place + 4] = page.to_bytes(4, "big")
    return {0: bytes(first), **moved}


def _places_of_children(content: bytes) -> list[int]:
    """Return where the first page of a file has the numbers of the other pages of the schema."""
    if content[100] == _ROW_PAGE:
        return []
    num_cells = _number(content, 103, 2)
    return [*(_number(content, 112 + 2 * index, 2) for index in range(num_cells)), 108]


def _number(content: bytes, start: int, nbytes: int) -> int:
    return int.from_bytes(content[start : start + nbytes], "big")


def _row_pages(path: Path) -> list[int]:
    with path.open("rb") as file:
        first_bytes = iter(lambda: file.read(PAGE_NBYTES)[:1], b"")
        return [number for number, byte in enumerate(first_bytes, 1) if byte == bytes([_ROW_PAGE])]


def _rows_below(copy: Path, root: int, children: list[int], sql: str) -> list[sqlite3.Row]:
    with copy.open("r+b") as file:
        file.seek((root - 1) * PAGE_NBYTES)
        file.write(_inner_page(children))
    with closing(sqlite3.connect(f"{copy.as_uri()}?immutable=1", uri=True)) as conn:
        conn.row_factory = sqlite3.Row
        conn.text_factory = readable
        conn.execute("PRAGMA writable_schema=ON")
        return conn.execute(sql).fetchall()


def _inner_page(children: list[int]) -> bytes:
    # A page needs a cell beside its last child, so the last one comes twice. Keys are of no use in a scan.
    cells = [
        child.to_bytes(4, "big") + bytes([0x80 | key >> 7, key & 0x7F])
        for key, child in enumerate(children, 128)
    ]
    content = b"".join(cells)
    start = PAGE_NBYTES - len(content)
    header = bytes([_INNER_PAGE, 0, 0]) + len(cells).to_bytes(2, "big") + start.to_bytes(2, "big") + bytes(1)
    pointers = b"".join((start + 6 * index).to_bytes(2, "big") for index in range(len(cells)))
    page = header + children[-1].to_bytes(4, "big") + pointers
    return page.ljust(start, b"\0") + content
