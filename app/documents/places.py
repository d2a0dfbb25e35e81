"""Where in a document a stretch of its text stands: its page and the heading above it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.documents.formats import Format

_WITHOUT_HEADINGS = (Format.CODE.value,)
# A line that starts with a number sign, a fence, or underlines the line before it.
_MARKS = re.compile(r"\n {0,3}(?:(#{1,6})[ \t]+([^\n]+)|(`{3,}|~{3,})[^\n]*|(={3,}|-{3,})[ \t]*(?=\n|\Z))")
_UNDERLINED = (Format.MARKDOWN.value, Format.TEXT.value)
_CLOSING_SIGNS = re.compile(r"[ \t]+#+[ \t]*$")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)")
_NOTE_MARK = re.compile(r"\[\^[^\]\s]+\]")
_EMPHASIS = re.compile(r"(\*{1,3}|_{2,3}|`+)(?=\S)(.+?)(?<=\S)\1")
_MAX_HEADING_CHARS = 80


@dataclass(frozen=True)
class Place:
    """Where a stretch of text stands.

    Attributes:
        page: counted from 1; None where the document has no pages.
        heading: the words of the nearest heading above, empty where there is none.
    """

    page: int | None = None
    heading: str = ""

    @property
    def words(self) -> str:
        """The place as it is shown, such as `p. 12, 3.2 Methods`; empty when nothing is known of it."""
        page = "" if self.page is None else f"p. {self.page}"
        return ", ".join(filter(None, (page, self.heading)))

    @property
    def sentence_words(self) -> str:
        """The place inside a sentence, such as `page 12, 3.2 Methods`."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(filter(None, (page, self.heading)))


@dataclass(frozen=True)
class Heading:
    """A heading of a document.

    Attributes:
        offset: where its line begins, in characters of the text.
        level: 1 for the largest, at most 6.
        title: its words in one line, without Markdown's signs, shortened when long.
    """

    offset: int
    level: int
    title: str


class Places:
    """The pages and headings of one document, made once and asked often.

    Attributes:
        headings: in the order of the text.
        num_pages: 0 where the document has none.
        textless_pages: pages that hold no text, such as scans; counted from 1.
    """

    def __init__(self, headings: Sequence[Heading], page_starts: Sequence[int], num_chars: int) -> None:
        """Use `Places.of`; `num_chars` is the length of the text."""
        self.headings = tuple(headings)
        self._heading_offsets = [heading.offset for heading in headings]
        self._page_starts = page_starts
        self.num_pages = len(page_starts)
        bounds = pairwise((*page_starts, num_chars))
        self.textless_pages = tuple(page for page, (start, end) in enumerate(bounds, start=1) if start == end)

    @classmethod
    def of(cls, text: str, kind: str, page_starts: Sequence[int] = ()) -> Places:
        """Return the places of a document; the arguments are the fields of `Document` and `Attachment`."""
        headings = () if kind in _WITHOUT_HEADINGS else tuple(_headings(text, kind in _UNDERLINED))
        return cls(headings, page_starts, len(text))

    def at(self, offset: int) -> Place:
        """Return the place of the character at `offset` of the text."""
        page = bisect_right(self._page_starts, offset) if self._page_starts else None
        heading = bisect_right(self._heading_offsets, offset) - 1
        return Place(page and max(page, 1), self.headings[heading].title if heading >= 0 else "")


def page_ranges(pages: Iterable[int]) -> str:
    """Return pages in few words, such as `3, 7–9`; they come in order."""
    ranges: list[list[int]] = []
    for page in pages:
        if ranges and page == ranges[-1][1] + 1:
            ranges[-1][1] = page
        else:
            ranges.append([page, page])
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)


def _headings(text: str, with_underlined: bool) -> Iterator[Heading]:
    """Yield the headings of Markdown, those outside of fenced code."""
    fence = ""
    for match in _MARKS.finditer(text if text.startswith("\n") else f"\n{text}"):
        shift = 0 if text.startswith("\n") else 1
        signs, words, fence_signs, underline = match.groups()
        if fence_signs:
            fence = _next_fence(fence, fence_signs)
        elif fence:
            continue
        elif signs:
            yield Heading(match.start() + 1 - shift, len(signs), _title(_CLOSING_SIGNS.sub("", words)))
        elif with_underlined and underline:
            end = match.start() - shift
            start = text.rfind("\n", 0, max(end, 0)) + 1
            words = text[start:end].strip() if end > 0 else ""
            if words and words[0].isalnum() and len(words) <= _MAX_HEADING_CHARS:
                yield Heading(start, 1 if underline[0] == "=" else 2, _title(words))


def _next_fence(fence: str, signs: str) -> str:
    """Return the fence that is open after a line of `signs`, empty for none."""
    if not fence:
        return signs
    return "" if signs.startswith(fence) else fence


def _title(words: str) -> str:
    """Return a heading's words without Markdown's signs, in one line and shortened."""
    words = _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", _NOTE_MARK.sub("", words)))
    words = " ".join(_ESCAPED.sub(r"\1", words).split())
    return words if len(words) <= _MAX_HEADING_CHARS else f"{words[: _MAX_HEADING_CHARS - 1].rstrip()}…"
