"""The last hour of samples as arrays, and what of it falls into each column of a picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.figures import Phase
from engine.memory import MemorySample
from ui.inspector.memory.parts import Part, parts_of

PHASES = tuple(Phase)
_MOST = 16_384
"""Rows of the arrays; more than an hour holds at two samples a second."""
_GAP_S = 20.0
"""Without a sample for longer, the computer slept: nothing is known of that time."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
    """Columns of equal time; the last one holds the newest sample.

    Columns begin at whole multiples of their time, so that a sample stays in its column as the picture moves.

    Attributes:
        column_s: seconds in a column.
        first: the number of the first column, counted from time 0.
        parts: bytes by `Part`, [parts, columns].
        swap: bytes of swap in use, [columns].
        phases: indices into `PHASES`, [columns]; of several in a column the last in that order.
        known: whether anything is known of a column, [columns].
    """

    column_s: float
    first: int
    parts: Floats
    swap: Floats
    phases: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]

    def column_of(self, time_s: float) -> int:
        """Return the column of a time, counted from the left; below 0 for what is older."""
        return int(time_s // self.column_s) - self.first


class MemorySeries:
    """Samples as arrays, newest last."""

    def __init__(self) -> None:
        self.samples: list[MemorySample] = []
        self._times = np.empty(_MOST)
        self._parts = np.empty((_MOST, len(Part)))
        self._swap = np.empty(_MOST)
        self._phases = np.empty(_MOST, dtype=np.int64)

    def append(self, sample: MemorySample) -> None:
        """Take a sample that is newer than all others."""
        if len(self.samples) == _MOST:
            self._forget(_MOST // 4)
        row = len(self.samples)
        self.samples.append(sample)
        self._times[row] = sample.time_s
        self._parts[row] = parts_of(sample)
        self._swap[row] = sample.swap_nbytes
        self._phases[row] = PHASES.index(sample.engine.phase)

    def index_at(self, time_s: float) -> int:
        """Return the sample that is nearest to a time; there must be one."""
        times = self._times[: len(self.samples)]
        after = int(np.searchsorted(times, time_s))
        if after == 0 or (after < len(times) and times[after] - time_s < time_s - times[after - 1]):
            return after
        return after - 1

    def columns(self, width: int, span_s: float) -> Columns:
        """Return the last `span_s` seconds in `width` columns; there must be a sample.

        Of several samples in a column the one with most bytes is shown; between samples lines are straight.
        """
        count = len(self.samples)
        column_s = span_s / width
        last = int(self._times[count - 1] // column_s)
        first = last - width + 1
        start = max(0, int(np.searchsorted(self._times[:count], first * column_s)) - 1)
        places = np.floor(self._times[start:count] / column_s).astype(np.int64) - first
        rows = _highest(places, self._parts[start:count].sum(axis=1)) + start
        first_rows = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        phases = np.maximum.reduceat(self._phases[start:count], first_rows)
        places = places[rows - start]
        grid = np.arange(width)
        before = np.clip(np.searchsorted(places, grid, side="right") - 1, 0, None)
        after = np.clip(np.searchsorted(places, grid), None, len(places) - 1)
        gaps = self._times[rows[after]] - self._times[rows[before]]
        return Columns(
            column_s=column_s,
            first=first,
            parts=np.stack([np.interp(grid, places, self._parts[rows, part]) for part in range(len(Part))]),
            swap=np.interp(grid, places, self._swap[rows]),
            phases=phases[before],
            known=(gaps <= max(_GAP_S, 2 * column_s)) & (grid >= places[0]),
        )

    def _forget(self, count: int) -> None:
        del self.samples[:count]
        for array in (self._times, self._parts, self._swap, self._phases):
            array[:-count] = array[count:].copy()


def _highest(places: npt.NDArray[np.int64], totals: Floats) -> npt.NDArray[np.int64]:
    """Return, for each place in turn, the index of the highest total there."""
    order: npt.NDArray[np.int64] = np.lexsort((totals, places))
    is_last = np.append(places[order][1:] != places[order][:-1], True)
    return np.asarray(order[is_last])
