"""Which lines of a PDF are headings: by its outline where it has one, else by the type they are set in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import pypdfium2

from app.documents.pdf.lines import Line, Table, body_size

Page = Sequence[Line | Table]
Outline = Mapping[int, Sequence[tuple[str, int]]]

_MAX_LINES = 4
_MAX_CHARS = 160
_MAX_BOLD_CHARS = 100
_MAX_OUTLINE_ENTRIES = 5000
_MAX_LEVEL = 6
_LARGE = 1.25
_LARGE_BOLD = 1.06
_MAX_SHARE = 0.2
_LINE_DISTANCE_EMS = 2.0
_BOLD_GAP = 1.2
_SIGNS = re.compile(r"\]\([^()]*\)|[\W\d_]+")
_LETTER = re.compile(r"[^\W\d_]")
_NO_HEADING = re.compile(
    r"@|[,;\x02-]$|(?:,.*){4}|…|(?:\. ){3}|^[•◦▪‣●■–—-]\s"
    r"|^(?:fig(?:ure|\.)|table|abb(?:ildung|\.)|tab(?:elle|\.))\s*\d",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[.:,;。：，]$")
_BEGINS_SMALL = re.compile(r"^\W*[a-zà-öø-ÿ]")


@dataclass(frozen=True)
class _Style:
    """How a line is set: its size in half points and whether it is bold."""

    half_points: int
    is_bold: bool


class Headings:
    """The headings of a document, found once all its pages are there."""

    def __init__(self, pages: Sequence[Page], outline: Outline) -> None:
        self._pages = pages
        self._outline = outline
        self._body = round(2 * body_size(pages))
        self._named = {index: self._find_named(index) for index in outline if index < len(pages)}
        num_named = sum(map(len, self._named.values()))
        is_complete = num_named and num_named >= sum(map(len, outline.values())) / 2
        self._levels = self._levels_by_outline() if is_complete else self._levels_by_size()

    def at(self, page_index: int, index: int) -> tuple[int, int] | None:
        """Return the level of the heading that begins at a page's line and its lines, None when none does."""
        named = self._named.get(page_index, {}).get(index)
        if named is not None:
            return named
        page = self._pages[page_index]
        line = page[index]
        level = self._levels.get(_style(line)) if isinstance(line, Line) else None
        if level is None or not self._looks_like_one(page, index):
            return None
        num_lines = _num_lines(page, index)
        lines = page[index : index + num_lines]
        has_address = any("@" in line.text for line in lines if isinstance(line, Line))
        return (level, num_lines) if num_lines <= _MAX_LINES and not has_address else None

    def _find_named(self, page_index: int) -> dict[int, tuple[int, int]]:
        """Return the headings of one page that the outline names, by their first line."""
        wanted = {_letters(title): level for title, level in self._outline[page_index] if _letters(title)}
        page = self._pages[page_index]
        found: dict[int, tuple[int, int]] = {}
        for index in range(len(page)):
            said = ""
            for num_lines, line in enumerate(islice(page, index, index + _MAX_LINES), start=1):
                if not isinstance(line, Line):
                    break
                said += _letters(line.text)
                if said and said in wanted and len(line.text) <= _MAX_CHARS:
                    found[index] = min(wanted.pop(said), _MAX_LEVEL), num_lines
                    break
        return found

    def _levels_by_outline(self) -> dict[_Style, int]:
        """Return the levels of styles that the outline's headings are set in, apart from the text's own."""
        levels: defaultdict[_Style, Counter[int]] = defaultdict(Counter)
        for page_index, found in self._named.items():
            for index, (level, _) in found.items():
                line = self._pages[page_index][index]
                if isinstance(line, Line) and self._stands_out(_style(line)):
                    levels[_style(line)][level] += 1
        return {style: counts.most_common(1)[0][0] for style, counts in levels.items()}

    def _levels_by_size(self) -> dict[_Style, int]:
        """Return the levels of styles by their size, bold before plain; what much text is set in has none."""
        num_chars: Counter[_Style] = Counter()
        total = 0
        for page in self._pages:
            for index, line in enumerate(page):
                if isinstance(line, Line):
                    total += len(line.text)
                    if self._stands_out(_style(line)) and self._looks_like_one(page, index):
                        num_chars[_style(line)] += len(line.text)
        styles = [style for style, count in num_chars.items() if count <= _MAX_SHARE * total]
        styles.sort(key=lambda style: (style.half_points, style.is_bold), reverse=True)
        levels: dict[_Style, int] = {}
        level = 0
        before = None
        for style in styles:
            is_alike = before is not None and before.half_points - style.half_points <= 1
            level += 0 if is_alike and before is not None and before.is_bold == style.is_bold else 1
            levels[style] = min(level, _MAX_LEVEL)
            before = style
        return levels

    def _stands_out(self, style: _Style) -> bool:
        """Return whether a style may be that of headings."""
        if style.is_bold:
            return style.half_points >= self._body
        return style.half_points >= _LARGE * self._body

    def _looks_like_one(self, page: Page, index: int) -> bool:
        """Return whether a line reads and stands like a heading, given that its type does."""
        line = page[index]
        if not isinstance(line, Line) or line.is_fixed or not _is_title(line.text):
            return False
        if _style(line).half_points >= _LARGE_BOLD * self._body:
            return True
        is_short = len(line.text) <= _MAX_BOLD_CHARS and _ENDS_SENTENCE.search(line.text) is None
        return is_short and _stands_apart(page, index)


def read_outline(document: pypdfium2.PdfDocument) -> dict[int, list[tuple[str, int]]]:
    """Return the titles of the document's outline with their levels from 1, by the index of their page."""
    outline: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for bookmark in islice(document.get_toc(), _MAX_OUTLINE_ENTRIES):
        destination = bookmark.get_dest()
        page_index = None if destination is None else destination.get_index()
        if page_index is not None:
            outline[page_index].append((bookmark.get_title(), bookmark.level + 1))
    return dict(outline)


def _style(line: Line) -> _Style:
    """Return how a line is set."""
    return _Style(round(2 * line.size), line.is_bold)


def _letters(text: str) -> str:
    """Return the letters of a title, which the outline and the page have in common."""
    return _SIGNS.sub("", text.casefold())


def _is_title(text: str) -> bool:
    """Return whether words may be a heading's."""
    if len(text) > _MAX_CHARS or len(_LETTER.findall(text)) < 2:
        return False
    return _NO_HEADING.search(text) is None and _BEGINS_SMALL.match(text) is None


def _num_lines(page: Page, index: int) -> int:
    """Return how many lines from `index` on are set alike and stand close: those of one heading."""
    num_lines = 1
    for before, line in zip(page[index:], page[index + 1 :], strict=False):
        if not isinstance(before, Line) or not isinstance(line, Line) or _style(before) != _style(line):
            break
        distance = before.box.bottom - line.box.bottom
        if not 0 < distance < _LINE_DISTANCE_EMS * line.size or _begins_with_number(line.text):
            break
        num_lines += 1
    return num_lines


def _begins_with_number(text: str) -> bool:
    """Return whether a line begins as a numbered heading of its own does."""
    return re.match(r"(\d+\.)+\d*\s|\d+\s+[^\W\d_]", text) is not None


def _stands_apart(page: Page, index: int) -> bool:
    """Return whether there is more room above a line than between the lines below it."""
    line = page[index]
    before = page[index - 1] if index else None
    if not isinstance(before, Line) or before.box.bottom < line.box.bottom:
        return True
    following = next((each for each in page[index + 1 :] if isinstance(each, Line)), None)
    gap = before.box.bottom - line.box.bottom
    if following is None or following.is_bold:
        return gap > _BOLD_GAP * 1.3 * before.size
    return gap > _BOLD_GAP * 1.15 * before.size
