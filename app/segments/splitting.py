"""Cutting a text into segments of at most so many tokens, where that hurts least."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

CountTokens = Callable[[str], int]
"""Gives the tokens of a text."""

LEAST_FILL = 0.5
"""A segment that is at least this full ends before a piece that does not fit, not in the middle of it."""

_BREAKS = (
    # Before a heading: of Markdown, or numbered as in a paper.
    re.compile(r"^(?=#{1,6} \S|\d+(?:\.\d+)*\.? [A-Z][^\n.!?]{0,80}$|(?:Chapter|Appendix) \S)", re.MULTILINE),
    # Behind blank lines.
    re.compile(r"(?:\n[ \t]*)+\n"),
    # Before and behind each row of a table.
    re.compile(r"^(?=\|)|(?<=\|\n)", re.MULTILINE),
    # Behind a sentence.
    re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？][”’」）]*"),
    # Behind a line, then behind a word.
    re.compile(r"\n"),
    re.compile(r"\s+"),
)
"""Where pieces end, from what belongs together least to what belongs together most."""
_WORDS = len(_BREAKS)
"""The depth of pieces that have been cut at all of these."""


def split_text(text: str, most_tokens: int, count_tokens: CountTokens) -> list[str]:
    """Return the segments of a text in order, without white space around them.

    A segment ends at a heading, a blank line, a row of a table, a sentence, a line or a word, in this order
    of preference. A row or a word is cut only where it alone is too long for a segment.
    """
    segments, begun = [], _Segment(most_tokens, count_tokens)
    waiting = [(text, 0)]
    while waiting:
        piece, depth = waiting.pop()
        if begun.add(piece):
            if waiting:
                continue
        elif begun.ends_before(piece, depth):
            waiting.append((piece, depth))
        else:
            waiting.extend((part, min(depth + 1, _WORDS)) for part in _parts(piece, depth)[::-1])
            continue
        waiting.extend((surplus, _WORDS) for surplus in begun.surplus())
        segments.append(begun.text)
        begun = _Segment(most_tokens, count_tokens)
    return [segment.strip() for segment in segments if segment.strip()]


def _parts(piece: str, depth: int) -> list[str]:
    """Return the parts of a piece; where nothing is left to cut at, its halves."""
    if depth < _WORDS:
        inner = {match.end() for match in _BREAKS[depth].finditer(piece)} - {0, len(piece)}
        ends = [0, *sorted(inner), len(piece)]
    else:
        ends = [0, len(piece) // 2, len(piece)]
    return [piece[start:end] for start, end in pairwise(ends)]


class _Segment:
    """Pieces in a row that make a segment together."""

    def __init__(self, most_tokens: int, count_tokens: CountTokens) -> None:
        self.pieces: list[str] = []
        self._most_tokens = most_tokens
        self._count_tokens = count_tokens
        self._num_tokens = 0

    @property
    def text(self) -> str:
        """The pieces put together; white space around them does not count."""
        return "".join(self.pieces)

    def add(self, piece: str) -> bool:
        """Take a piece where there is room for it; return whether there was.

        A single character is always taken, however many tokens it is.
        """
        num_tokens = self._count_tokens(piece)
        fits = self._num_tokens + num_tokens <= self._most_tokens
        if not fits and (self.pieces or not (len(piece) == 1 or self._fits_alone(piece))):
            return False
        self.pieces.append(piece)
        self._num_tokens += num_tokens
        return True

    def ends_before(self, piece: str, depth: int) -> bool:
        """Whether to end before a piece that does not fit, so that the next segment has it whole."""
        if not self.pieces or depth == _WORDS:
            return bool(self.pieces)
        is_row = piece.startswith("|") and "\n" not in piece.rstrip("\n")
        enough = is_row or self._num_tokens >= LEAST_FILL * self._most_tokens
        return enough and self._fits_alone(piece)

    def _fits_alone(self, text: str) -> bool:
        return self._count_tokens(text.strip()) <= self._most_tokens

    def surplus(self) -> list[str]:
        """Give back pieces from the end, the last one first, while all together are too long after all.

        Pieces are counted one by one, and a tokenizer may need a few tokens more for all of them in a row.
        """
        given_back = []
        while len(self.pieces) > 1 and not self._fits_alone(self.text):
            given_back.append(self.pieces.pop())
        return given_back
