"""What kind of question is asked about a document."""

from __future__ import annotations

import re

from app.lookup.words import Vocabulary, folded, is_hiragana, terms_of, vocabularies, vocabulary_of

_COUNT = re.compile(r"\d{1,2}|\d{3,4}(?=\s+\w)")
"""How many words or points the answer shall have."""


def is_about_whole(question: str) -> bool:
    """Return whether a question is about a whole document, as "summarize this": not one to look up.

    It is where it has no word but those that ask, name the document, or say what form the answer shall have.
    A question without words is.
    """
    return any(_is_about_whole(folded(question), each) for each in _vocabularies(question))


def names_whole(question: str) -> bool:
    """Return whether a question says that it is about a whole document, unlike "and?" or "why?"."""
    return any(each.whole.search(folded(question)) for each in _vocabularies(question))


def _vocabularies(question: str) -> tuple[Vocabulary, ...]:
    by_script = vocabulary_of(question)
    return (by_script,) if not by_script.is_spaced else tuple(vocabularies().values())


def _is_about_whole(question: str, vocabulary: Vocabulary) -> bool:
    telling, num_whole = vocabulary.whole.subn(" ", question)
    telling = vocabulary.stop.sub(" ", telling)
    if not terms_of(telling):
        return True
    rest = terms_of(vocabulary.form.sub(" ", telling))
    return num_whole > 0 and all(_COUNT.fullmatch(term) or is_hiragana(term) for term in rest)
