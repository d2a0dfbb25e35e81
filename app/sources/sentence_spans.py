"""Where the sentences of a text lie in it."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import accumulate

from app.ledger.sentences import sentences

_WORD = re.compile(r"\S+")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of a text begins, and the place behind its end, in order.

    Sentences leave out nothing but white space, so that their other characters tell where they lie.
    """
    words = list(_WORD.finditer(text))
    ends = list(accumulate(len(word.group()) for word in words))
    spans, told = [], 0
    for sentence in sentences(text):
        first, told = told, told + sum(map(len, sentence.split()))
        spans.append((_place(words, ends, first + 1) - 1, _place(words, ends, told)))
    return spans


def _place(words: list[re.Match[str]], ends: list[int], number: int) -> int:
    """Return the place behind the character with this number, from 1 on, white space not counted."""
    index = bisect_left(ends, number)
    return words[index].end() - (ends[index] - number)
