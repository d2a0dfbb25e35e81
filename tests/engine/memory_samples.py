"""Readings and samples of memory, as fake sensors give them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from engine.figures import EngineFigures
from engine.memory import MemoryReading, MemorySample, PressureLevel

MB, GB = 10**6, 10**9

ROOMY = MemoryReading(time_s=0.0, total_nbytes=16 * GB, available_nbytes=8 * GB, process_nbytes=GB)
"""A computer with 16 GB, half of them free."""

LETTERS = {
    "n": PressureLevel.NORMAL,
    "t": PressureLevel.NORMAL,
    "w": PressureLevel.WARNING,
    "c": PressureLevel.CRITICAL,
}


def reading(**changes: Any) -> MemoryReading:
    """Return the roomy computer with some changes."""
    return dataclasses.replace(ROOMY, **changes)


def sample(level: PressureLevel, time_s: float = 0.0, **changes: Any) -> MemorySample:
    """Return a sample with a level, named in its reason."""
    taken = MemorySample.of(reading(time_s=time_s), EngineFigures(), level, f"it is {level.name}")
    return dataclasses.replace(taken, **changes)


def samples(levels: Iterable[str], every_s: float = 1.0) -> list[MemorySample]:
    """Return a sample for each letter: n normal, t normal but tight, w warning, c critical."""
    return [
        sample(LETTERS[letter], index * every_s, has_spare=letter == "n")
        for index, letter in enumerate(levels)
    ]
