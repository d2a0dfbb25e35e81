"""Words that were split at the ends of lines."""

from __future__ import annotations

import re
from collections.abc import Iterable

LINE_END_HYPHEN = "\x02"
"""A hyphen at the end of a line, taken out with the line break; the sign is PDFium's."""

_SPLIT_WORD = re.compile(rf"(\w+){LINE_END_HYPHEN}(\w*)")
_SPLIT_END = re.compile(r"(?<![\w-])([^\W\d_]+)-\Z")
_FIRST_WORD = re.compile(r"[^\W\d_]\w*")
_HYPHENATED = re.compile(r"(?=\b(\w+-\w+)\b)")


class SplitWords:
    """Puts words together that were split at the ends of lines, by what the rest of the document has."""

    def __init__(self, texts: Iterable[str]) -> None:
        """`texts` are all of the document's."""
        self._hyphenated: set[str] = set()
        self._words: set[str] = set()
        for text in texts:
            self._hyphenated.update(word.lower() for word in _HYPHENATED.findall(text))
            self._words.update(re.findall(r"\w+", text))

    def join(self, text: str) -> str:
        """Return `text` with each `LINE_END_HYPHEN` gone, or a hyphen.

        The hyphen stays where the document has the same word with one elsewhere, and before anything but a
        small letter unless the document has the word without one.
        """
        if LINE_END_HYPHEN not in text:
            return text
        return _SPLIT_WORD.sub(self._joined, text).replace(LINE_END_HYPHEN, "-")

    def going_on(self, text: str, following: str) -> str | None:
        """Return a page without a hyphen at its end that is not its word's; None where no word goes on."""
        left, right = _SPLIT_END.search(text), _FIRST_WORD.match(following)
        if left is None or right is None or not right[0][0].islower():
            return None
        word = self.join(f"{left[1]}{LINE_END_HYPHEN}{right[0]}")
        return text if "-" in word else text[:-1]

    def _joined(self, match: re.Match[str]) -> str:
        """Return one word."""
        left, right = match.groups()
        if f"{left}-{right}".lower() in self._hyphenated:
            return f"{left}-{right}"
        is_word = right[:1].islower() or left + right in self._words
        return left + right if is_word else f"{left}-{right}"
