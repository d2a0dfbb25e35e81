"""Which notes an answer cites, by number or by what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.ledger.sentences import sentences
from app.lookup.words import vocabulary_of
from app.sources.words import Weights, told_words

LEAST_SHARED = 2.0
"""What a sentence of an answer has to share with a note to rest on it, see `Weights`: two rare words, or a
name, or a number that few notes have."""
_CODE_OR_LINK = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|!?\[[^\]\n]*\]\([^)\s]*(?:[ \t]+\"[^\"\n]*\")?\)", re.DOTALL
)
_BRACKETS = re.compile(r"\[\s*\d{1,4}(?:\s*[,;–-]\s*\d{1,4})*\s*\]|【\s*\d{1,4}\s*】")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class CitableNote:
    """What an answer may cite.

    Attributes:
        number: what it is cited by, as in `[3]`.
        text: the note; empty for a passage that was looked at.
        passage: the words of the document that it was taken from, or the passage itself.
    """

    number: int
    text: str
    passage: str


@dataclass(frozen=True)
class Citation:
    """A number in an answer that cites a note.

    Attributes:
        number: the note's number.
        start: first character of the number in the answer; brackets are not part of it.
        stop: the one behind its last.
    """

    number: int
    start: int
    stop: int


def citations(answer: str) -> tuple[Citation, ...]:
    """Return the numbers in square brackets of an answer, as in `[3]`, `[1, 4]` or `[2-4]`, in order.

    Of a range only its ends; none in code or of links. Whether there is such a note is not asked.
    """
    told = _CODE_OR_LINK.sub(lambda match: " " * len(match.group()), answer)
    return tuple(
        Citation(int(number.group()), number.start(), number.end())
        for brackets in _BRACKETS.finditer(told)
        for number in _NUMBER.finditer(told, brackets.start(), brackets.end())
    )


def cited(answer: str, notes: Sequence[CitableNote]) -> frozenset[int]:
    """Return the numbers of the notes that an answer cites.

    By number where it names any of them. Else by what it says: the notes, and the passages behind them, that
    share numbers, names and rare words with it.
    """
    named = {citation.number for citation in citations(answer)} & {note.number for note in notes}
    return frozenset(named) if named else _told(answer, notes)


def _told(answer: str, notes: Sequence[CitableNote]) -> frozenset[int]:
    """Return for each sentence of an answer the note that it shares most with, the first of equal ones."""
    texts = [f"{note.text}\n{note.passage}" for note in notes]
    vocabulary = vocabulary_of(answer, "\n".join(texts))
    words = [told_words(text, vocabulary) for text in texts]
    weights = Weights(texts, words)
    found = set()
    for sentence in sentences(answer):
        told = told_words(sentence, vocabulary)
        shared = [sum(weights.shared(each, told).values()) for each in words]
        if max(shared, default=0.0) >= LEAST_SHARED:
            found.add(notes[shared.index(max(shared))].number)
    return frozenset(found)
