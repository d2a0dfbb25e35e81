"""Sizes in words and the words of other programs, the same everywhere."""

from __future__ import annotations

import re

from engine.errors import OctavoError

MOST_NBYTES = 10**15
"""The largest size that may be asked for, a million gigabytes."""

_UNITS = "kmgt"
_MOST_MORE_DIGITS = 10
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE | re.ASCII)


def format_nbytes(nbytes: int) -> str:
    """Return bytes for people, in powers of 1000 as their names say: `98 MB`, `1.5 GB`."""
    return _in_words(nbytes, 0)


def format_apart(one_nbytes: int, other_nbytes: int) -> tuple[str, str]:
    """Return two sizes for people, with as many digits as it takes to see that they are not the same."""
    for more_digits in range(_MOST_MORE_DIGITS):
        one, other = _in_words(one_nbytes, more_digits), _in_words(other_nbytes, more_digits)
        if one != other:
            break
    return one, other


def _in_words(nbytes: int, more_digits: int) -> str:
    if nbytes < 1000:
        return f"{nbytes} bytes"
    size = float(nbytes)
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            digits = more_digits + (size < 9.95 or unit == "GB")
            return f"{size:.{digits}f} {unit}"
    return f"{size:,.{more_digits}f} GB"


def format_parameters(count: int) -> str:
    """Return a number of parameters as people say it: `135 M`, `6.7 B`."""
    return f"{count / 1e9:,.1f} B" if count >= 999_500_000 else f"{count / 1e6:.3g} M"


def parse_nbytes(text: str) -> int:
    """Return the bytes that `16G`, `1.5GB`, `800M` or `16GiB` mean: powers of 1000, with an i of 1024.

    Raises:
        OctavoError: it is no size, or one that is 0 or larger than any memory.
    """
    match = _SIZE.fullmatch(text.strip())
    nbytes = 0.0
    if match is not None:
        power = _UNITS.index(match[2].lower()) + 1 if match[2] else 0
        nbytes = float(match[1]) * (1024 if match[3] else 1000) ** power
    if not 1 <= nbytes <= MOST_NBYTES:
        raise OctavoError(f"“{text[:40]}” is no size of memory; write it as 16G, 1.5GB, 800M or 16GiB.")
    return int(nbytes)


def first_line(error: BaseException) -> str:
    """Return the first line of an error of another program, at most 200 characters, without a full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")


def last_line(said: str) -> str:
    """Return the last line that a program wrote, where most put what went wrong; empty without one."""
    lines = said.strip().splitlines()
    return lines[-1] if lines else ""
