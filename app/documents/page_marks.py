"""Marks of page breaks inside the text of formats that flow, taken out when the text is whole."""

from __future__ import annotations

import re

_SIGN = "\U0010fffd"
_MARK = re.compile(f"{_SIGN}(\\d{{1,6}}){_SIGN}")
_ALONE = re.compile(f"(?:(?<=\\n\\n)|\\A){_SIGN}(\\d{{1,6}}){_SIGN}(?:\\n\\n|\\Z)|{_MARK.pattern}")
_LINE_START = re.compile(r"[ \t>#|*-]*(?:\d+[.)])?[ \t]*\Z")


def page_mark(number: int) -> str:
    """Return the mark of the beginning of page `number`."""
    return f"{_SIGN}{number}{_SIGN}"


def is_page_mark(text: str) -> bool:
    """Return whether a text is nothing but the mark of a page."""
    return _MARK.fullmatch(text) is not None


def without_page_marks(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without its marks, and where each page begins in it.

    There are no pages unless the marks count up, from page 1 or 2 on; a page that is left out has no text.
    """
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    end = 0
    num_chars = 0
    for match in _ALONE.finditer(text):
        pieces.append(text[end : match.start()])
        num_chars += len(pieces[-1])
        end = match.end()
        marks.append((int(match[1] or match[2]), num_chars - _lead(text, match.start())))
    pieces.append(text[end:])
    whole = "".join(pieces).rstrip("\n")
    return whole, _starts(marks, len(whole))


def _lead(text: str, index: int) -> int:
    """Return how many signs of Markdown stand before `index` on its line, 0 where there are words too."""
    line_start = text.rfind("\n", 0, index) + 1
    before = _MARK.sub("", text[line_start:index])
    return len(before) if _LINE_START.match(before) else 0


def _starts(marks: list[tuple[int, int]], num_chars: int) -> tuple[int, ...]:
    """Return where pages begin, by marks with their page and offset."""
    if not marks or marks[0][0] > 2:
        return ()
    starts = [0]
    for number, offset in marks:
        if number == 1 and len(starts) == 1:
            continue
        if number <= len(starts):
            return ()
        starts += [min(offset, num_chars)] * (number - len(starts))
    return tuple(starts)
