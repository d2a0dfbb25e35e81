"""The axis of bytes: where it ends and which numbers stand beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.wording import format_nbytes

_LEAST_TOP = 100e6
_HEADROOM = 1.12
_LIMIT_NEAR = 1.6
_LIMIT_HEADROOM = 1.15
"""Room for the words above the line of the limit, which may not stand on the curve."""
_MOST_TICKS = 4


@dataclass(frozen=True)
class ByteScale:
    """An axis from 0 to `top` with numbers at `ticks`, both in bytes."""

    top: float
    ticks: tuple[float, ...]


def byte_scale(peak: float, limit: float) -> ByteScale:
    """Return an axis that holds `peak`, and `limit` as well where that is not far above."""
    wanted = max(_LEAST_TOP, peak * _HEADROOM)
    if limit <= wanted * _LIMIT_NEAR:
        wanted = max(wanted, limit * _LIMIT_HEADROOM)
    step = _step(wanted / _MOST_TICKS)
    top = math.ceil(wanted / (step / 2)) * step / 2
    return ByteScale(top, tuple(step * number for number in range(1, int(top / step) + 1)))


def axis_text(nbytes: float) -> str:
    """Return a number of the axis, as short as it can be."""
    return format_nbytes(round(nbytes)).replace(".0 ", " ")


def _step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)
