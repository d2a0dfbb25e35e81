"""What texts can be held against each other by: their numbers, names and words that mean something."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from app.ledger.facts import names_in, numbers_in
from app.lookup.words import Vocabulary, content_terms, is_unspaced, pairs_of

NUMBER_WEIGHT, NAME_WEIGHT = 3.0, 2.0
"""What a number and a name count, beside a word that one of the texts alone has, which counts 1."""
_STEM = 6
"""Letters that tell words apart, so that other endings do not count."""
_LEAST_DIGITS = 2
"""Numbers of fewer digits count as words do: they are everywhere."""


def told_words(text: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the numbers, and the words that mean something, by their first letters."""
    words: set[str] = set()
    for term in content_terms(text, vocabulary):
        if is_unspaced(term):
            words.update(pairs_of(term))
        elif not any(map(str.isdigit, term)):
            words.update(part[:_STEM] for part in term.replace("-", " ").split())
    return frozenset(words | numbers_in(text))


def full_weights(text: str, words: frozenset[str]) -> Mapping[str, float]:
    """Return the words that a text tells, see `told_words`, with what each counts at most."""
    names = {name[:_STEM] for name in names_in([text])}
    return {
        word: NUMBER_WEIGHT if _is_number(word) else NAME_WEIGHT if word in names else 1.0 for word in words
    }


def _is_number(word: str) -> bool:
    return word.isdigit() and len(word) >= _LEAST_DIGITS


class Weights:
    """What words count that some texts have, by how few of these have them.

    Args:
        texts: as people wrote them.
        words: what each of them tells, see `told_words`.
    """

    def __init__(self, texts: Sequence[str], words: Sequence[frozenset[str]]) -> None:
        self._num_texts = len(texts)
        self._texts_with = Counter(word for each in words for word in each)
        self._names = {name[:_STEM] for name in names_in(texts)}

    def of(self, word: str) -> float:
        """Return what a word counts; nothing where no text has it."""
        num_texts = self._texts_with[word]
        if not num_texts:
            return 0.0
        rarity = math.log(1 + self._num_texts / num_texts) / math.log(1 + self._num_texts)
        if _is_number(word):
            return NUMBER_WEIGHT * rarity
        return rarity * (NAME_WEIGHT if word in self._names else 1.0)

    def shared(self, some: frozenset[str], others: frozenset[str]) -> Mapping[str, float]:
        """Return the words that two texts share, with what each counts."""
        return {word: self.of(word) for word in some & others}
