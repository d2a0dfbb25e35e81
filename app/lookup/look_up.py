"""Looking up: the passages of a text that fit the words of a question, by BM25 and position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """A heading of a text.

    Attributes:
        offset: its first character.
        title: its words.
    """

    offset: int
    title: str


@dataclass(frozen=True)
class Passage:
    """A passage of a text that fits a question.

    Attributes:
        start: its first character.
        stop: the one behind its last.
        score: how well it fits, more is better; only to be compared within one answer of `LookUp.passages`.
    """

    start: int
    stop: int
    score: float


class LookUp:
    """An index of one text, in memory; belongs to the thread that made it, and goes with it.

    Making it takes about half a second for a megabyte: keep it while the document is used.

    Args:
        text: the document's text.
        headings: of the text, in order; what stands below one is found by its words as well.
    """

    def __init__(self, text: str, headings: Sequence[Heading] = ()) -> None:
        raise NotImplementedError

    def passages(
        self, question: str, budget_tokens: int, count_tokens: Callable[[str], int]
    ) -> tuple[Passage, ...]:
        """Return the passages that fit a question best, in the order of the text, apart from each other.

        Empty where nothing is relevant: the rare words of the question are nowhere.

        Args:
            question: what is asked.
            budget_tokens: what all passages may have together.
            count_tokens: counts the tokens of a text.
        """
        raise NotImplementedError
