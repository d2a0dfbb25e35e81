"""The stretch of a long text that is laid out at one moment."""

from __future__ import annotations

from dataclasses import dataclass

STRETCH_CHARS = 48_000
"""Characters that are laid out at once: some tens of milliseconds, and many screens high."""
_MARGIN = STRETCH_CHARS // 5
"""When fewer characters than these are left above or below what is seen, the stretch moves."""
_LONGEST_LINE = 4_000
"""How far a stretch is cut from where it would be, to end with a line."""
# What Qt would drop or take for more than one character; each stands for one, so that places stay right.
_REPLACED = str.maketrans({"\r": " ", "\0": "\ufffd", "\ufdd0": "\ufffd", "\ufdd1": "\ufffd", "\u2029": "\n"})


@dataclass(frozen=True)
class Stretch:
    """A part of a text, and where its characters are in Qt's documents, which count UTF-16 units.

    Attributes:
        start: its first character in the text.
        shown: its characters, one for each of the text.
        is_last: whether the text ends with it.
    """

    start: int
    shown: str
    is_last: bool

    @classmethod
    def around(cls, text: str, offset: int) -> Stretch:
        """Return the stretch of `text` with `offset` in its middle, in whole lines."""
        start = max(0, min(offset - STRETCH_CHARS // 2, len(text) - STRETCH_CHARS))
        stop = min(len(text), start + STRETCH_CHARS)
        if start:
            start = _after_line(text, start - _LONGEST_LINE, start)
        if stop < len(text):
            stop = _after_line(text, max(offset + 1, stop - _LONGEST_LINE), stop)
        return cls(start, text[start:stop].translate(_REPLACED), stop == len(text))

    @property
    def stop(self) -> int:
        """The character of the text behind its last."""
        return self.start + len(self.shown)

    def holds(self, offset: int) -> bool:
        """Whether a character is in it."""
        return self.start <= offset < self.stop or (self.is_last and offset == self.stop)

    def is_near_edge(self, first: int, last: int) -> bool:
        """Whether what is seen, from one character to another, leaves too little above it or below."""
        lacks_above = self.start > 0 and first - self.start < _MARGIN
        lacks_below = not self.is_last and self.stop - last < _MARGIN
        return lacks_above or lacks_below

    def position(self, offset: int) -> int:
        """Return the position in Qt's document of a character of the text; the nearest one when outside."""
        inside = max(0, min(offset - self.start, len(self.shown)))
        return _units(self.shown[:inside])

    def offset(self, position: int) -> int:
        """Return the character of the text at a position of Qt's document."""
        if self.shown.isascii():
            return self.start + min(position, len(self.shown))
        head = self.shown.encode("utf-16-le", "surrogatepass")[: 2 * position]
        return self.start + len(head.decode("utf-16-le", "ignore"))


def _after_line(text: str, first: int, last: int) -> int:
    """Return where the last line before `last` ends that ends behind `first`; `last` where none does."""
    end = text.rfind("\n", max(0, first), last)
    return end + 1 if end >= 0 else last


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
