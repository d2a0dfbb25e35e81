"""Judges whether memory is short, from what matters to the people at this computer.

A false alarm costs more than a late one. Old swap in use, a page cache that fills the memory, or a program
that takes much and leaves enough, are no pressure. What waits for calm waits until there is room to spare, so
that figures which waver around a threshold do not drive anything up and down.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.memory import MemoryReading, PressureLevel
from engine.memory_limits import MemoryLimits
from engine.wording import format_nbytes

SPARE = 1.3
"""There is room to spare where there is this many times as much as makes the first level."""


@dataclass(frozen=True)
class Pressure:
    """How short memory is.

    Attributes:
        level: how much.
        reason: why, in words.
        has_spare: whether nothing is even near to being short.
    """

    level: PressureLevel
    reason: str
    has_spare: bool


@dataclass(frozen=True)
class _Room:
    """What must be left of something: a share of it, and never more than a number of bytes."""

    share: float
    most_nbytes: int

    def of(self, whole_nbytes: int) -> float:
        return min(self.share * whole_nbytes, self.most_nbytes)


_GB, _MB = 10**9, 10**6

_FREE = {PressureLevel.WARNING: _Room(0.05, _GB), PressureLevel.CRITICAL: _Room(0.02, 400 * _MB)}
"""Of the computer's memory. Systems begin to look for pages that they can take back at about 1 %."""
_ALLOWED = {PressureLevel.WARNING: _Room(0.10, _GB), PressureLevel.CRITICAL: _Room(0.03, 256 * _MB)}
"""Of what a control group or the user allows: nothing is taken back there, and a group's end is a kill."""
_STALLED = {PressureLevel.WARNING: (0.10, 0.15), PressureLevel.CRITICAL: (0.30, 0.10)}
"""The share of time that is waited for memory, and the share of memory below which that counts.

With more memory free, others wait inside limits of their own.
"""
_SWAPPED = {PressureLevel.WARNING: (20 * _MB, 0.10), PressureLevel.CRITICAL: (100 * _MB, 0.05)}
"""Bytes a second that are written to swap, and the share of memory below which that counts.

With more memory free, the system only puts away what nobody has used for long.
"""


def judge(reading: MemoryReading, limits: MemoryLimits) -> Pressure:
    """Return how short memory is by one reading."""
    for level in (PressureLevel.CRITICAL, PressureLevel.WARNING):
        reason = next(_reasons(reading, limits, level), None)
        if reason is not None:
            return Pressure(level, reason, False)
    is_near = any(_reasons(reading, limits, PressureLevel.WARNING, SPARE))
    return Pressure(PressureLevel.NORMAL, _fine(reading), not is_near)


def _reasons(
    reading: MemoryReading, limits: MemoryLimits, level: PressureLevel, slack: float = 1.0
) -> Iterator[str]:
    """Yield why this level is reached; `slack` asks for that many times as much room."""
    allowed, group = _ALLOWED[level], reading.group
    most, own = limits.most_nbytes, reading.process_nbytes
    if most is not None and most - own < slack * allowed.of(most):
        yield f"Octavo takes {_of(own, most)} that it may"
    if group is not None and group.free_nbytes < slack * allowed.of(group.limit_nbytes):
        yield f"{_of(group.used_nbytes, group.limit_nbytes)} that this container may take are in use"
    free_share = _free_share(reading)
    swap_rate, low_share = _SWAPPED[level]
    if reading.swap_rate * slack > swap_rate and free_share < slack * low_share:
        rate = format_nbytes(int(reading.swap_rate))
        yield f"swap grows by {rate} a second and {_percent(free_share)} of memory are free"
    stalled, low_share = _STALLED[level]
    if (reading.stalled or 0.0) * slack > stalled and free_share < slack * low_share:
        yield f"programs wait for memory {_percent(reading.stalled or 0.0)} of the time"
    if reading.system_level is not None:
        if reading.system_level >= level:
            yield f"macOS says that memory is {'very ' if level is PressureLevel.CRITICAL else ''}short"
    elif reading.available_nbytes < slack * _FREE[level].of(reading.total_nbytes):
        yield f"only {_of(reading.available_nbytes, reading.total_nbytes)} of memory are free"


def _free_share(reading: MemoryReading) -> float:
    """Return the share that is free, of the computer's memory or the control group's, whichever is less."""
    free_share, group = reading.available_nbytes / reading.total_nbytes, reading.group
    return free_share if group is None else min(free_share, group.free_nbytes / max(1, group.limit_nbytes))


def _fine(reading: MemoryReading) -> str:
    group = reading.group
    if group is not None and group.free_nbytes < reading.available_nbytes:
        return f"{_of(group.free_nbytes, group.limit_nbytes)} that this container may take are free"
    return f"{_of(reading.available_nbytes, reading.total_nbytes)} of memory are free"


def _of(part_nbytes: int, whole_nbytes: int) -> str:
    """Return two sizes with their unit said once, where that is the same: `1.9 of the 2.0 GB`."""
    part, whole = format_nbytes(part_nbytes), format_nbytes(whole_nbytes)
    unit = whole.rpartition(" ")[2]
    return f"{part.removesuffix(f' {unit}')} of the {whole}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
