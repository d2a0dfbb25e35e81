"""Where the cells of the page map lie, by arithmetic."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QRect

GAP = 2
"""Pixels between cells."""
GROUP_GAP = 10
"""Pixels below a group."""
_PITCHES = ((48, 24), (240, 20), (1200, 15))
"""Up to so many cells, how far apart these are at least."""
_LEAST_PITCH = 11


@dataclass(frozen=True)
class PageGrid:
    """Groups of square cells below each other, each with room for a heading.

    Attributes:
        counts: cells of each group.
        width: pixels from the left to the right.
        heading_height: pixels of a heading, 0 for none.
    """

    counts: tuple[int, ...]
    width: int
    heading_height: int

    @cached_property
    def columns(self) -> int:
        """Cells in a row."""
        total = sum(self.counts)
        pitch = next((pitch for most, pitch in _PITCHES if total <= most), _LEAST_PITCH)
        return max(1, (self.width + GAP) // pitch)

    @cached_property
    def pitch(self) -> int:
        """Pixels from a cell to the next; more than needed where the width leaves them over."""
        return max(GAP + 1, (self.width + GAP) // self.columns)

    @property
    def cell(self) -> int:
        """Pixels of a cell's side."""
        return self.pitch - GAP

    @property
    def num_cells(self) -> int:
        """Cells of all groups."""
        return self._firsts[-1]

    @cached_property
    def height(self) -> int:
        """Pixels from the top of the first heading to the bottom of the last cell."""
        return max(0, self._tops[-1] - GROUP_GAP)

    def group_of(self, index: int) -> int:
        """Return the group that a cell is in."""
        return bisect_right(self._firsts, index) - 1

    def heading(self, group: int) -> QRect:
        """Return where the heading of a group goes."""
        return QRect(0, self._tops[group], self.width, self.heading_height)

    def rect(self, index: int) -> QRect:
        """Return where a cell lies."""
        group = self.group_of(index)
        row, column = divmod(index - self._firsts[group], self.columns)
        top = self._tops[group] + self.heading_height + row * self.pitch
        return QRect(column * self.pitch, top, self.cell, self.cell)

    def index_at(self, x: int, y: int) -> int | None:
        """Return the cell at a point, the gaps right and below included; None where there is none."""
        group = bisect_right(self._tops, y) - 1
        if not 0 <= group < len(self.counts) or not 0 <= x < self.columns * self.pitch:
            return None
        row, column = (y - self._tops[group] - self.heading_height) // self.pitch, x // self.pitch
        offset = row * self.columns + column
        return self._firsts[group] + offset if row >= 0 and offset < self.counts[group] else None

    def between(self, top: int, bottom: int) -> Iterator[tuple[int, int, int]]:
        """Yield the cells of the rows with pixels from `top` to `bottom`: number, left and top."""
        for group in self.groups_between(top, bottom):
            first, start = self._firsts[group], self._tops[group] + self.heading_height
            rows = -(-self.counts[group] // self.columns)
            low = max(0, (top - start) // self.pitch)
            for row in range(low, min(rows, (bottom - start) // self.pitch + 1)):
                y, offset = start + row * self.pitch, row * self.columns
                for column in range(min(self.columns, self.counts[group] - offset)):
                    yield first + offset + column, column * self.pitch, y

    def groups_between(self, top: int, bottom: int) -> range:
        """Return the groups that have pixels from `top` to `bottom`."""
        first = max(0, bisect_right(self._tops, top) - 1)
        return range(first, min(len(self.counts), bisect_right(self._tops, bottom)))

    def row_step(self, index: int, direction: int) -> int:
        """Return the cell below (1) or above (-1), in another group where need be; the same at the end."""
        group = self.group_of(index)
        offset = index - self._firsts[group]
        row, column = divmod(offset, self.columns)
        if 0 <= row + direction <= (self.counts[group] - 1) // self.columns:
            return self._firsts[group] + min(offset + direction * self.columns, self.counts[group] - 1)
        group += direction
        if not 0 <= group < len(self.counts):
            return index
        last = self.counts[group] - 1
        start = 0 if direction > 0 else last - last % self.columns
        return self._firsts[group] + min(start + column, last)

    @cached_property
    def _firsts(self) -> list[int]:
        """The first cell of each group, and the number of all."""
        return list(itertools.accumulate(self.counts, initial=0))

    @cached_property
    def _tops(self) -> list[int]:
        """The top of each group, and where a further one would begin."""
        rows = (-(-count // self.columns) for count in self.counts)
        heights = (self.heading_height + row * self.pitch - GAP + GROUP_GAP for row in rows)
        return list(itertools.accumulate(heights, initial=0))
