"""What is looked for in an index: the terms of a question, as FTS5 writes them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from app.lookup.words import Vocabulary, content_terms, is_unspaced, pairs_of

_LEAST_STEM, _CUT_SHARE = 4, 0.3
"""Words are found in other forms too, by their first letters: so many at least, and all but this share."""
_NAME_CUT = 1
"""So many letters are cut off a name: another name often begins alike."""
_CAPITALISING = ("de",)
"""Languages that write other words than names with a capital as well."""
_CAPITALISED = re.compile(r"(?<=[\w,;:)] )[^\W\d_]\w*")


@dataclass(frozen=True)
class Term:
    """A word, a number or a pair of characters of a question.

    Attributes:
        word: as it is asked.
        forms: what FTS5 is asked for: the word, and what begins alike, as it may have another ending.
        stem: the letters or digits that all of these begin with.
        is_name: whether it is a number or has a capital within a sentence, so that nothing else will do.
    """

    word: str
    forms: str
    stem: str
    is_name: bool

    @property
    def exact(self) -> str:
        """What FTS5 is asked for the word as it is."""
        return f'"{self.word}"'


def terms_of_question(question: str, vocabulary: Vocabulary) -> list[Term]:
    """Return what a question is looked up by."""
    names = {
        match.group().casefold()
        for match in _CAPITALISED.finditer(question)
        if not match.group().islower() and match.group() != match.group().lower()
    }
    in_full = frozenset() if vocabulary.name in _CAPITALISING else names
    found: dict[str, Term] = {}
    for word in content_terms(question, vocabulary):
        for piece in pairs_of(word) if is_unspaced(word) else [word]:
            is_name = piece in names or any(map(str.isdigit, piece))
            stem, has_more = _stem(piece, piece in in_full)
            forms = f'"{stem}" *' if has_more else f'"{stem}"'
            found.setdefault(piece, Term(piece, forms, stem, is_name))
    return list(found.values())


def _stem(word: str, is_name: bool) -> tuple[str, bool]:
    """Return what a word begins with in all its forms, and whether more may follow."""
    if is_unspaced(word):
        return word, len(word) == 1
    if not word.isalpha() or len(word) < _LEAST_STEM:
        return word, False
    num_cut = _NAME_CUT if is_name else math.ceil(_CUT_SHARE * len(word))
    return word[: max(_LEAST_STEM, len(word) - num_cut)], True
