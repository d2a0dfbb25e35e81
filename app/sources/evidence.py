"""The sentences of a text that a note rests on, or that fit a question best."""

from __future__ import annotations

from collections.abc import Callable


def locate(note: str, text: str) -> tuple[int, int] | None:
    """Return where the sentences in a row lie that a note rests on: first character, and behind the last.

    None where no sentence shares a number, a name or a rare word with it.
    """
    raise NotImplementedError


def best_sentences(question: str, text: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return the sentences of a text that fit a question best, in the order of the text.

    At most so many tokens; ` … ` stands where sentences between two were left out. Empty where none shares
    a word that means something with the question, or none fits.
    """
    raise NotImplementedError
