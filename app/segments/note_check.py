"""Whether a note says only what its segment says, as far as rules can see that."""

from __future__ import annotations

import re

from app.ledger.facts import names_in, numbers_in
from app.ledger.sentences import sentences, words_of
from app.ledger.summary_check import repeats
from app.sources.evidence import locate

_ITEM_NUMBER = re.compile(r"^\s*(?:\(?\d{1,2}[.):]|[-*•])\s+", re.MULTILINE)
"""A number that counts the items of a list: the note's own."""
_STEM_CHARACTERS = 5


def without_echo(note: str, prompt: str) -> str:
    """Return a note without the sentences that repeat what was asked."""
    asked = f" {' '.join(words_of(prompt))} "
    kept = [each for each in sentences(note) if f" {' '.join(words_of(each))} " not in asked]
    return note if len(kept) == len(sentences(note)) else "\n".join(kept)


def is_supported(note: str, text: str) -> bool:
    """Return whether a note rests on a text.

    It adds nothing, a sentence of the text shares what is rare with it, and it does not go round in circles.

    Args:
        note: what a model wrote.
        text: what it was written on, without words around it, which a model repeats.
    """
    told = _ITEM_NUMBER.sub("", note)
    return not (adds(told, text) or repeats(note)) and locate(told, text) is not None


def tells(note: str, sentence: str, question: str) -> bool:
    """Return whether a note has most of the numbers and names of a sentence that are not in a question."""
    facts = numbers_in(sentence) | names_in([sentence])
    facts -= numbers_in(question) | set(words_of(question))
    told = numbers_in(note) | set(words_of(note))
    return 2 * len(facts & told) > len(facts) or not facts


def adds(note: str, text: str) -> bool:
    """Return whether a note has numbers or names that are not in a text.

    Those of the question are no exception: a model that finds nothing tells of what is asked all the same.
    """
    told = _ITEM_NUMBER.sub("", note)
    if numbers_in(told) - numbers_in(text):
        return True
    known = set(words_of(text))
    stems = {word[:_STEM_CHARACTERS] for word in known}
    return any(
        name not in known and name[:_STEM_CHARACTERS] not in stems for name in names_in(sentences(told))
    )
