"""Durations in words, as people say them."""

from __future__ import annotations

_MINUTE_S = 60
_LONGEST_IN_MINUTES = 90


def duration_words(seconds: float) -> str:
    """Return a duration as people say it: `less than a minute`, `about 12 minutes`, `about 3 hours`."""
    if seconds < _MINUTE_S:
        return "less than a minute"
    minutes = round(seconds / _MINUTE_S)
    count, unit = (minutes, "minute") if minutes < _LONGEST_IN_MINUTES else (round(seconds / 3600), "hour")
    return f"about {count:,} {unit}{'' if count == 1 else 's'}"


def short_duration(seconds: float) -> str:
    """Return a duration as it can be known, on one line: `about 40 s`, `about 3 min`, `about 2 h`."""
    if seconds < 1:
        return "less than a second"
    if seconds < 10:
        return f"about {seconds:.0f}\N{NO-BREAK SPACE}s"
    if seconds < 2 * _MINUTE_S:
        return f"about {round(seconds, -1):.0f}\N{NO-BREAK SPACE}s"
    minutes = round(seconds / _MINUTE_S)
    if minutes < _LONGEST_IN_MINUTES:
        return f"about {minutes}\N{NO-BREAK SPACE}min"
    return f"about {seconds / 3600:,.0f}\N{NO-BREAK SPACE}h"
