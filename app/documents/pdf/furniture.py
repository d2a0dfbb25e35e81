"""Headers and footers, which repeat from page to page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from app.documents.pdf.lines import Line, Table, body_size

_EDGE_LINES = 3
_MIN_PAGES = 3
_BIN_PT = 6.0
_MIN_SAID_WORDS = 3
_NUMBER = re.compile(
    r"^\W*(?:\d+|[ivxl]+)\b|\b(?:\d+|[ivxl]+)\W*$|\d+(?=\W*(?:of|/|von|sur|de|di)\W*#?\d*\W*$)"
)
_APART = 1.5
_LARGE = 1.25
_DIGITS = re.compile(r"[0-9]{1,9}")
_WORDS = re.compile(r"[^\W\d_]{2,}")
_WITHOUT_BLANKS = re.compile("(?=([\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]{2}))")

_Signature = tuple[str, int]


def without_furniture(pages: Sequence[Sequence[Line | Table]]) -> list[list[Line | Table]]:
    """Return the pages' lines without headers and footers.

    One that says something that the text does not say stays once, where it comes first.
    """
    repeated = _repeated(pages)
    if not repeated:
        return [list(page) for page in pages]
    removed = [_removed(page, repeated) for page in pages]
    rest = [
        [line for line in page if id(line) not in gone] for page, gone in zip(pages, removed, strict=True)
    ]
    if sum(1 for page in rest if page) < sum(1 for page in pages if page) / 2:
        return [list(page) for page in pages]
    kept = _kept_once(pages, removed, rest)
    return [
        [line for line in page if id(line) not in gone or id(line) in kept]
        for page, gone in zip(pages, removed, strict=True)
    ]


def _repeated(pages: Sequence[Sequence[Line | Table]]) -> set[int]:
    """Return the ids of lines that stand at the edges of so many pages that they are headers or footers."""
    seen: defaultdict[_Signature, list[tuple[int, Line]]] = defaultdict(list)
    largest = _LARGE * body_size(pages)
    for index, page in enumerate(pages):
        for line in _edges(page):
            seen[_signature(line, with_numbers=line.size > largest)].append((index, line))
    lines = {signature: found for signature, found in seen.items() if _go_with_pages(found)}
    counts = {signature: len({index for index, _ in found}) for signature, found in lines.items()}
    repeated = {each for each, count in counts.items() if _is_repeated(each, count, len(pages))}
    heights = {height for _, height in repeated}
    repeated |= {each for each, count in counts.items() if count > 1 and each[1] in heights}  # short chapters
    return {id(line) for each in repeated for _, line in lines[each]}


def _go_with_pages(lines: Sequence[tuple[int, Line]]) -> bool:
    """Return whether the numbers of lines, each with the index of its page, mostly stay or count the pages.

    The first line of a page may be one of many alike, such as `Example 12`.
    """
    numbers = [(index, list(map(int, _DIGITS.findall(line.text)))) for index, line in lines]
    steps = [
        not (one and other) or any(b - a in (0, after - before) for a, b in zip(one, other, strict=False))
        for (before, one), (after, other) in pairwise(numbers)
    ]
    return 2 * sum(steps) >= len(steps)


def _edges(page: Sequence[Line | Table]) -> list[Line]:
    """Return the uppermost and lowermost lines of a page."""
    lines = sorted((line for line in page if isinstance(line, Line)), key=lambda line: line.box.bottom)
    return lines if len(lines) <= 2 * _EDGE_LINES else [*lines[:_EDGE_LINES], *lines[-_EDGE_LINES:]]


def _signature(line: Line, *, with_numbers: bool) -> _Signature:
    """Return what the same header has on all pages: its words, whatever the number, and its height.

    Large type is of headings, which may count: their numbers are part of what they say.
    """
    words = line.text.casefold()
    return words if with_numbers else _NUMBER.sub("#", words), round(line.box.bottom / _BIN_PT)


def _is_repeated(signature: _Signature, count: int, num_pages: int) -> bool:
    """Return whether what stands on `count` pages is a header or footer."""
    is_number = _WORDS.search(signature[0]) is None and "#" in signature[0]
    return count >= _MIN_PAGES or (is_number and count == num_pages == 2)


def _removed(page: Sequence[Line | Table], repeated: set[int]) -> set[int]:
    """Return the ids of a page's headers and footers: repeated lines with nothing else outside of them."""
    by_height = sorted(page, key=lambda line: line.box.bottom)
    return {*_leading(by_height, repeated), *_leading(reversed(by_height), repeated)}


def _leading(lines: Iterable[Line | Table], repeated: set[int]) -> list[int]:
    """Return the ids of the first lines, as far as they are repeated and stand apart from the rest."""
    found: list[Line] = []
    following = None
    for line in lines:
        if len(found) == _EDGE_LINES or not isinstance(line, Line) or id(line) not in repeated:
            following = line
            break
        found.append(line)
    while found and following is not None and not _is_apart(found[-1], following):
        following = found.pop()
    return [id(line) for line in found]


def _is_apart(line: Line, other: Line | Table) -> bool:
    """Return whether more room parts two lines than those of a paragraph."""
    higher, lower = (line.box, other.box) if line.box.bottom > other.box.bottom else (other.box, line.box)
    return higher.bottom - (lower.bottom if isinstance(other, Line) else lower.top) > _APART * line.size


def _kept_once(
    pages: Sequence[Sequence[Line | Table]],
    removed: Sequence[set[int]],
    rest: Sequence[Sequence[Line | Table]],
) -> set[int]:
    """Return the ids of lines to keep, the first of each that says what stands nowhere else."""
    said: set[str] = set()
    for text in (line.text for page in rest for line in page if isinstance(line, Line)):
        said.update(_words(text))
    kept = set()
    seen: set[tuple[str, ...]] = set()
    for page, gone in zip(pages, removed, strict=True):
        for line in page:
            if not isinstance(line, Line) or id(line) not in gone:
                continue
            words = _words(line.text)
            num_new = sum(1 for word in words if word not in said)
            if len(words) >= _MIN_SAID_WORDS and num_new >= len(words) / 2 and words not in seen:
                kept.add(id(line))
            seen.add(words)
    return kept


def _words(text: str) -> tuple[str, ...]:
    """Return the words of a line without numbers and signs; pairs of signs where no blanks part words."""
    pairs = _WITHOUT_BLANKS.findall(text)
    return tuple(pairs or _WORDS.findall(text.casefold()))
