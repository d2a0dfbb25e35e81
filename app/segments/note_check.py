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


def is_supported(note: str, text: str, question: str) -> bool:
    """Return whether a note rests on a text.

    It adds nothing, a sentence of the text shares what is rare with it, and it does not go round in circles.

    Args:
        note: what a model wrote.
        text: what it was written on, with the words that say where that stands.
        question: what was asked.
    """
    told = _ITEM_NUMBER.sub("", note)
    return not (adds(told, text, question) or repeats(note)) and locate(told, text) is not None


def tells(note: str, sentence: str, question: str) -> bool:
    """Return whether a note has most of the numbers and names of a sentence that are not in a question."""
    facts = numbers_in(sentence) | names_in([sentence])
    facts -= numbers_in(question) | set(words_of(question))
    told = numbers_in(note) | set(words_of(note))
    return 2 * len(facts & told) > len(facts) or not facts


def adds(note: str, text: str, question: str) -> bool:
    """Return whether a note has numbers or names that are not in a text.

    Of the names in a question only those that stand in no sentence with a number: else what the text says of
    something else would be told of what is asked.
    """
    told = _ITEM_NUMBER.sub("", note)
    if numbers_in(told) - numbers_in(text):
        return True
    names, in_text = names_in(sentences(told)), set(words_of(text))
    asked, asked_numbers = set(words_of(question)), numbers_in(question)
    for sentence in sentences(told):
        known = in_text if numbers_in(sentence) - asked_numbers else in_text | asked
        stems = {word[:_STEM_CHARACTERS] for word in known}
        own = names & set(words_of(sentence))
        if any(name not in known and name[:_STEM_CHARACTERS] not in stems for name in own):
            return True
    return False
