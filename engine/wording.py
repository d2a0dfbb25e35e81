"""Sizes in words and the words of other programs, the same everywhere."""

from __future__ import annotations


def format_nbytes(nbytes: int) -> str:
    """Return bytes for people, in powers of 1000 as their names say: `98 MB`, `1.5 GB`."""
    if nbytes < 1000:
        return f"{nbytes} bytes"
    size = float(nbytes)
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 999.5:
            return f"{size:.1f} {unit}" if size < 9.95 or unit == "GB" else f"{size:.0f} {unit}"
    return f"{size:,.0f} GB"


def first_line(error: BaseException) -> str:
    """Return the first line of an error of another program, at most 200 characters, without a full stop."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(".")


def last_line(said: str) -> str:
    """Return the last line that a program wrote, where most put what went wrong; empty without one."""
    lines = said.strip().splitlines()
    return lines[-1] if lines else ""
