"""Cutting a text into segments of at most so many tokens, where that hurts least."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise

from app.documents.formats import Format

CountTokens = Callable[[str], int]
"""Gives the tokens of a text."""

LEAST_FILL = 0.5
"""A segment that is at least this full ends before a piece that does not fit, not in the middle of it."""
_MOST_CHARACTERS = 64
"""A stretch of so many characters for each token of a segment is too long: it need not be counted."""
_LONGEST_WORD = 100
"""Letters without a space are looked through so far for a place to cut them at."""

_BLANK_LINES = re.compile(r"(?:\n[ \t]*)+\n")
_LINES = re.compile(r"\n")
_WORDS = re.compile(r"\s+")
_ABBREVIATIONS = r"(?<!\b(?:Dr|Mr|No|St|Nr|vs|cf))(?<!\b(?:Fig|Mrs|Eqs|Vol|bzw|vgl|e\.g|i\.e))"
_PROSE = (
    # Before a heading of Markdown: the large ones, then all, and what is numbered as in a paper.
    re.compile(r"^(?=#{1,2} \S)", re.MULTILINE),
    re.compile(r"^(?=#{3,6} \S|\d+(?:\.\d+)*\.? [A-Z][^\n.!?]{0,80}$|(?:Chapter|Appendix) \S)", re.MULTILINE),
    _BLANK_LINES,
    # Before and behind each row of a table.
    re.compile(r"^(?=\|)|(?<=\|\n)", re.MULTILINE),
    # Behind a sentence.
    re.compile(rf"{_ABBREVIATIONS}[.!?…؟۔।][\"'”’»)\]]*\s+(?![a-z])|[。！？｡][”’」』）]*"),
    _LINES,
    _WORDS,
    # Behind a comma of a script that has no spaces.
    re.compile(r"[，、；：]"),
)
_CODE = (
    # Before what is not indented, behind blank lines.
    re.compile(r"(?:\n[ \t]*)+\n(?=\S)"),
    _BLANK_LINES,
    _LINES,
    _WORDS,
)
"""Where pieces end, from what belongs together least to what belongs together most."""

_TABLE = re.compile(r"^(\|[^\n]*\n\|[ \t:|-]+\n)(?:\|[^\n]*(?:\n|\Z))+", re.MULTILINE)
_IN_WORD = re.compile(r"[^\W\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3]{2}")


class TableHeads:
    """The head lines of the tables of a text, which are read again where a table goes on in a segment.

    Args:
        text: what has tables, as Markdown.
        segment_tokens: the most tokens of a segment; a head is repeated that has at most so many characters,
            which is about a quarter of it.
    """

    def __init__(self, text: str, segment_tokens: int) -> None:
        found = list(_TABLE.finditer(text)) if "\n|" in text or text.startswith("|") else []
        self._starts = [match.start() for match in found]
        self._tables = [(match.end(1), match.end(), match.group(1)) for match in found]
        self._most_characters = segment_tokens

    def before(self, offset: int) -> str:
        """Return the head lines of the table whose rows go on at `offset`, empty where none does."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return ""
        first_row, stop, head = self._tables[at]
        return head if first_row <= offset < stop and len(head) <= self._most_characters else ""


def split_text(
    text: str, most_tokens: int, count_tokens: CountTokens, kind: str = Format.MARKDOWN.value
) -> list[tuple[int, int]]:
    """Return where the segments of a text lie, in order, without white space around them.

    A segment ends at a heading, a blank line, a row of a table, a sentence, a line or a word, in this order
    of preference; one of code before what is not indented, at a blank line or a line. A row or a word is cut
    only where it alone is too long for a segment. There is room for the head of a table before its rows.

    Args:
        text: what is cut.
        most_tokens: of a segment.
        count_tokens: counts a text.
        kind: the format of the document.
    """
    breaks = _CODE if kind == Format.CODE.value else _PROSE
    splitting = _Splitting(text, breaks, most_tokens, count_tokens)
    waiting = [(0, len(text), 0)]
    while waiting:
        start, stop, depth = waiting.pop()
        if splitting.add(start, stop):
            continue
        if splitting.ends_before(start, stop, depth):
            splitting.end()
            waiting.append((start, stop, depth))
        else:
            waiting.extend(
                (*part, min(depth + 1, len(breaks))) for part in splitting.parts(start, stop, depth)[::-1]
            )
    while splitting.has_begun:
        splitting.end()
    return splitting.segments


class _Splitting:
    """A text that is being cut: the segments that are done, and the one that has begun.

    Attributes:
        segments: those that are done.
    """

    def __init__(
        self, text: str, breaks: tuple[re.Pattern[str], ...], most_tokens: int, count_tokens: CountTokens
    ) -> None:
        self.segments: list[tuple[int, int]] = []
        self._text = text
        self._breaks = breaks
        self._most_tokens = most_tokens
        self._count_tokens = count_tokens
        self._heads = TableHeads(text, most_tokens)
        self._ends: list[int] = []  # where the pieces of the segment that has begun end
        self._start = 0
        self._num_tokens = 0

    def add(self, start: int, stop: int) -> bool:
        """Take a piece where there is room for it; return whether there was.

        A single character is always taken, however many tokens it is.
        """
        if self._is_too_long(start, stop):
            return False
        num_tokens = self._count_tokens(self._text[start:stop])
        if not self._ends:
            self._start, self._num_tokens = start, self._head_tokens(start)
        fits = self._num_tokens + num_tokens <= self._most_tokens
        if not fits and (self._ends or not (stop - start == 1 or self._fits_alone(start, stop))):
            return False
        self._ends.append(stop)
        self._num_tokens += num_tokens
        return True

    def parts(self, start: int, stop: int, depth: int) -> list[tuple[int, int]]:
        """Return the parts of a piece; where nothing is left to cut at, its halves."""
        if depth < len(self._breaks):
            inner = {match.end() for match in self._breaks[depth].finditer(self._text, start, stop)}
            ends = [start, *sorted(inner - {start, stop}), stop]
        else:
            ends = [start, self._middle(start, stop), stop]
        return list(pairwise(ends))

    def _middle(self, start: int, stop: int) -> int:
        """Return where to halve a piece without spaces: between words of other letters where it has some."""
        middle = (start + stop) // 2
        for distance in range(min((stop - start) // 2 - 1, _LONGEST_WORD)):
            for at in (middle - distance, middle + distance):
                if not _IN_WORD.match(self._text, at - 1):
                    return at
        return middle

    def ends_before(self, start: int, stop: int, depth: int) -> bool:
        """Whether to end before a piece that does not fit, so that the next segment has it whole."""
        if not self._ends or depth == len(self._breaks):
            return bool(self._ends)
        is_row = self._text[start] == "|" and "\n" not in self._text[start:stop].rstrip("\n")
        enough = is_row or self._num_tokens >= LEAST_FILL * self._most_tokens
        return enough and self._fits_alone(start, stop)

    @property
    def has_begun(self) -> bool:
        """Whether a segment has begun."""
        return bool(self._ends)

    def end(self) -> None:
        """End the segment that has begun.

        Pieces are counted one by one, and a tokenizer may need a few tokens more for all of them in a row:
        those that are too many then begin the next segment.
        """
        kept = len(self._ends)
        while kept > 1 and not self._fits_alone(self._start, self._ends[kept - 1]):
            kept -= 1
        stop = self._ends[kept - 1]
        self._close(self._start, stop)
        self._ends = self._ends[kept:]
        if self._ends:
            self._start = stop
            begun = self._count_tokens(self._text[stop : self._ends[-1]])
            self._num_tokens = self._head_tokens(stop) + begun

    def _close(self, start: int, stop: int) -> None:
        words = self._text[start:stop].strip()
        if words:
            first = self._text.index(words[0], start)
            self.segments.append((first, first + len(words)))

    def _is_too_long(self, start: int, stop: int) -> bool:
        return stop - start > _MOST_CHARACTERS * self._most_tokens

    def _fits_alone(self, start: int, stop: int) -> bool:
        if self._is_too_long(start, stop):
            return False
        num_tokens = self._count_tokens(self._text[start:stop].strip())
        return self._head_tokens(start) + num_tokens <= self._most_tokens

    def _head_tokens(self, start: int) -> int:
        head = self._heads.before(start)
        return self._count_tokens(head) if head else 0
