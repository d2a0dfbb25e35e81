"""Which notes an answer cites, by number or by what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class NumberedNote:
    """What an answer may cite.

    Attributes:
        number: what it is cited by, as in `[3]`.
        text: the note; empty for a passage that was looked at.
        passage: the words of the document that it was taken from, or the passage itself.
    """

    number: int
    text: str
    passage: str


@dataclass(frozen=True)
class Citation:
    """A number in an answer that cites a note.

    Attributes:
        number: the note's number.
        start: first character of the number in the answer; brackets are not part of it.
        stop: the one behind its last.
    """

    number: int
    start: int
    stop: int


def citations(answer: str) -> tuple[Citation, ...]:
    """Return the numbers in square brackets of an answer, as in `[3]`, `[1, 4]` or `[2-4]`, in order.

    Of a range only its ends; none in code or of links. Whether there is such a note is not asked.
    """
    raise NotImplementedError


def cited(answer: str, notes: Sequence[NumberedNote]) -> frozenset[int]:
    """Return the numbers of the notes that an answer cites.

    By number where it names any of them. Else by what it says: the notes, and the passages behind them, that
    share numbers, names and rare words with it.
    """
    raise NotImplementedError
