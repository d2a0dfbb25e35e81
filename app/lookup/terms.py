"""What is looked for in an index: the terms of a question, as FTS5 writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.lookup.words import Vocabulary, content_terms, is_unspaced, pairs_of

_LEAST_STEM, _CUT_SHARE = 4, 0.25
"""Words are found in other forms too, by their first letters: so many at least, and all but this share."""
_CAPITALISED = re.compile(r"(?<=[\w,;:)] )[^\W\d_]\w*")


@dataclass(frozen=True)
class Term:
    """A word, a number or a pair of characters of a question.

    Attributes:
        exact: what FTS5 is asked for.
        forms: the same, and what begins alike: a word may have another ending.
        is_name: whether it is a number or has a capital within a sentence, so that nothing else will do.
    """

    exact: str
    forms: str
    is_name: bool


def terms_of_question(question: str, vocabulary: Vocabulary) -> list[Term]:
    """Return what a question is looked up by."""
    names = {
        match.group().casefold()
        for match in _CAPITALISED.finditer(question)
        if not match.group().islower() and match.group() != match.group().lower()
    }
    found: dict[str, Term] = {}
    for word in content_terms(question, vocabulary):
        for piece in pairs_of(word) if is_unspaced(word) else [word]:
            found.setdefault(piece, _term(piece, piece in names or any(map(str.isdigit, piece))))
    return list(found.values())


def _term(word: str, is_name: bool) -> Term:
    exact = f'"{word}"'
    if is_unspaced(word):
        return Term(
            exact if len(word) > 1 else f"{exact} *", exact if len(word) > 1 else f"{exact} *", is_name
        )
    if not word.isalpha() or len(word) < _LEAST_STEM:
        return Term(exact, exact, is_name)
    stem = word[: max(_LEAST_STEM, len(word) - int(_CUT_SHARE * len(word)))]
    return Term(exact, f'"{stem}" *', is_name)
