"""The numbers that Word shows before paragraphs and does not keep in their text: `3.2`, `(a)`, bullets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
BULLET = "-"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN_UNITS = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_MAX_LEVELS = 9


@dataclass(frozen=True)
class _Level:
    """How one level of a list counts: `text` holds `%1` for the number of the first level and so on."""

    start: int
    style: str
    text: str


class Numbering:
    """Counts the paragraphs of a document's lists, in the order in which their labels are asked for."""

    def __init__(self, root: Any) -> None:
        """Take the root element of `numbering.xml`, None when the document has none."""
        self._levels: dict[str, dict[int, _Level]] = {}
        self._abstract_of: dict[str, str] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        self._counters: dict[str, list[int | None]] = {}
        if root is None:
            return
        for abstract in root.iter(f"{WORD}abstractNum"):
            self._levels[abstract.get(f"{WORD}abstractNumId", "")] = _levels(abstract)
        for num in root.iter(f"{WORD}num"):
            self._add_list(num)

    def label(self, list_id: str, level: int) -> str | None:
        """Count one paragraph of a list and return its label, `-` for bullets, None for an unknown list."""
        abstract = self._abstract_of.get(list_id)
        if abstract is None or not 0 <= level < _MAX_LEVELS:
            return None
        levels = self._levels.get(abstract, {})
        here = levels.get(level)
        if here is None or here.style == "bullet":
            return BULLET
        counters = self._counters.setdefault(abstract, [None] * _MAX_LEVELS)
        for restarted, start in self._restarts.pop(list_id, {}).items():
            counters[restarted] = start - 1
        before = counters[level]
        counters[level] = here.start if before is None else before + 1
        counters[level + 1 :] = [None] * (_MAX_LEVELS - level - 1)
        return "" if here.style == "none" else _fill_in(here.text, levels, counters)

    def _add_list(self, num: Any) -> None:
        """Note which levels a list takes and where it starts anew."""
        list_id = num.get(f"{WORD}numId", "")
        self._abstract_of[list_id] = _value(num.find(f"{WORD}abstractNumId"))
        overrides = num.findall(f"{WORD}lvlOverride")
        self._restarts[list_id] = {
            _number(override.get(f"{WORD}ilvl"), 0): _number(_value(start), 1)
            for override in overrides
            if (start := override.find(f"{WORD}startOverride")) is not None
            and 0 <= _number(override.get(f"{WORD}ilvl"), 0) < _MAX_LEVELS
        }


def _levels(abstract: Any) -> dict[int, _Level]:
    """Return the levels of a list definition by their index."""
    return {
        _number(level.get(f"{WORD}ilvl"), 0): _Level(
            start=_number(_value(level.find(f"{WORD}start")), 1),
            style=_value(level.find(f"{WORD}numFmt")) or "decimal",
            text=_value(level.find(f"{WORD}lvlText")),
        )
        for level in abstract.findall(f"{WORD}lvl")
    }


def _fill_in(text: str, levels: dict[int, _Level], counters: list[int | None]) -> str:
    """Put the counters into a level's text."""

    def number(match: re.Match[str]) -> str:
        index = int(match[1]) - 1
        level = levels.get(index)
        count = counters[index]
        if level is None:
            return ""
        return _styled(level.start if count is None else count, level.style)

    return re.sub(r"%([1-9])", number, text).strip()


def _styled(number: int, style: str) -> str:
    """Return a number as its style writes it."""
    if not 0 < number < 4000:
        return str(number)
    if style in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters if style == "lowerLetter" else letters.upper()
    if style in ("lowerRoman", "upperRoman"):
        roman = _roman(number)
        return roman if style == "lowerRoman" else roman.upper()
    return f"{number:02d}" if style == "decimalZero" else str(number)


def _roman(number: int) -> str:
    """Return a Roman number in lower case."""
    signs = ""
    for value, sign in (*_ROMAN, *_ROMAN_UNITS):
        signs += sign * (number // value)
        number %= value
    return signs


def _value(element: Any) -> str:
    """Return an element's `w:val`, empty when there is none."""
    return "" if element is None else element.get(f"{WORD}val", "")


def _number(text: str | None, default: int) -> int:
    """Return an attribute as a number, `default` when it is none."""
    return int(text) if text and re.fullmatch(r"\d{1,9}", text) else default
