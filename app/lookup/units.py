"""Cutting a text into the small pieces that are looked up."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from app.documents.places import Heading
from app.lookup.words import UNSPACED

_SIZES = (240, 800, 1200)
"""Characters of a piece: at least, about, and at most;"""
_UNSPACED_SIZES = (80, 300, 450)
"""of a text in which a character says as much as two or three."""
_LEAST_UNSPACED_SHARE = 0.3
_SAMPLE_CHARACTERS = 4000
_BREAKS = (
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n(?=\s*(?:[-*•·–—|]|\d{1,3}[.)])\s?)"),
    re.compile(r"(?<=[.!?…؟۔।])[\"'”’»)\]]*\s|[。！？｡]+[”’」』）]*"),
    re.compile(r"\n"),
    re.compile(r"\s"),
)
"""Where pieces end, the best first: blank lines, items of lists, rows of tables, sentences, lines, words."""


@dataclass(frozen=True)
class Unit:
    """A piece of a text.

    Attributes:
        start: its first character.
        stop: the one behind its last.
        heading: the titles of the headings that it stands below, the outermost first.
    """

    start: int
    stop: int
    heading: str


def units_of(text: str, headings: Sequence[Heading]) -> list[Unit]:
    """Return the pieces of a text in order; nothing but white space lies between them."""
    sample = text[:_SAMPLE_CHARACTERS]
    num_unspaced = len(re.findall(f"[{UNSPACED}]", sample))
    sizes = _UNSPACED_SIZES if num_unspaced > _LEAST_UNSPACED_SHARE * len(sample) else _SIZES
    offsets, paths = [heading.offset for heading in headings], _paths(headings)
    units, start = [], _next_word(text, 0)
    while start < len(text):
        stop = _stop(text, start, offsets, sizes)
        below = bisect_right(offsets, start) - 1
        units.append(Unit(start, stop, paths[below] if below >= 0 else ""))
        start = _next_word(text, stop)
    return units


def _next_word(text: str, start: int) -> int:
    match = re.compile(r"\S").search(text, start)
    return match.start() if match else len(text)


def _stop(text: str, start: int, offsets: Sequence[int], sizes: tuple[int, int, int]) -> int:
    least, about, most = sizes
    end = min(start + most, len(text))
    heading = bisect_right(offsets, start + least)
    if heading < len(offsets) and offsets[heading] <= end:
        return offsets[heading]
    if len(text) - start <= most:
        return len(text)
    for pattern in _BREAKS:
        stops = [match.end() for match in pattern.finditer(text, start + least, end)]
        if stops:
            return min(stops, key=lambda stop: abs(stop - start - about))
    return end


def _paths(headings: Sequence[Heading]) -> list[str]:
    """Return for each heading its title behind those that it stands below."""
    paths: list[str] = []
    open_headings: list[Heading] = []
    for heading in headings:
        while open_headings and open_headings[-1].level >= heading.level:
            open_headings.pop()
        open_headings.append(heading)
        paths.append(" / ".join(each.title for each in open_headings))
    return paths
