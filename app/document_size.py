"""How large a document is: pages, words, tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

COUNTED_CHARS = 1_000_000
"""A longer text is counted by stretches,"""
_NUM_SAMPLES = 64
"""so many"""
SAMPLE_CHARS = 4096
"""of so many characters."""
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = rf"[^\W{_IDEOGRAPHS}]+"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|{_LETTERS}(?:['\u2019-]{_LETTERS})*")


@dataclass(frozen=True)
class DocumentSize:
    """How large a document is.

    Attributes:
        num_pages: pages, None where the format has none.
        num_words: words; in Chinese and Japanese, characters.
        num_tokens: tokens of all that the model reads of it when it reads it whole.
    """

    num_pages: int | None
    num_words: int
    num_tokens: int


def num_words(text: str) -> int:
    """Return the words of a text; in Chinese and Japanese, the characters."""
    return sum(1 for _ in _WORD.finditer(text))


def stretches(text: str) -> tuple[str, ...]:
    """Return what is counted of a text: all of it, of a long one some stretches from all of it."""
    if len(text) <= COUNTED_CHARS:
        return (text,)
    apart = len(text) // _NUM_SAMPLES
    return tuple(text[start : start + SAMPLE_CHARS] for start in range(0, apart * _NUM_SAMPLES, apart))


def scaled(num_tokens: int, text: str) -> int:
    """Return about how many tokens a text has whose `stretches` have so many."""
    if len(text) <= COUNTED_CHARS:
        return num_tokens
    return num_tokens * len(text) // (SAMPLE_CHARS * _NUM_SAMPLES)


def about_tokens(text: str, count: Callable[[str], int]) -> int:
    """Return about how many tokens a text has: of a long one, some stretches are counted."""
    return scaled(sum(map(count, stretches(text))), text)
