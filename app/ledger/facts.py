"""The facts of a text as far as rules can see them: its numbers, dates and names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.ledger.sentences import sentences, words_of

if TYPE_CHECKING:
    from app.ledger.summary_request import SourcePart

OWN_FACT, ANSWER_FACT = 1.0, 0.5
"""What a fact counts that the user or a document tells, and one that only an answer has."""
_NUMBER = re.compile(r"\d+")
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?!\d)")
"""A number with its thousands apart, which a model may write another way."""
_CAPITALISED = re.compile(r"[^\W\d_]\w+")


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text by their digits, whatever script these are in."""
    found = _NUMBER.findall(_GROUPED.sub(lambda grouped: re.sub(r"\D", "", grouped.group()), text))
    return {"".join(str(int(digit)) for digit in number) for number in found}


def names_in(texts: Sequence[str]) -> set[str]:
    """Return words of sentences, in small letters, that have a capital within one and are nowhere small."""
    capitalised, small = set(), set()
    for text in texts:
        for number, match in enumerate(_CAPITALISED.finditer(text)):
            word = match.group()
            if word.islower():
                small.add(word)
            elif number:
                capitalised.add(word.casefold())
    return capitalised - small


def facts_of(parts: Sequence[SourcePart]) -> Mapping[str, float]:
    """Return the numbers and names of what was said, with what each counts."""
    names = names_in([sentence for part in parts for sentence in sentences(part.text)])
    facts: dict[str, float] = {}
    for part in parts:
        worth = ANSWER_FACT if part.is_answer else OWN_FACT
        for fact in numbers_in(part.text) | (names & set(words_of(part.text))):
            facts[fact] = max(facts.get(fact, 0.0), worth)
    return facts


def kept_facts(text: str, facts: Mapping[str, float]) -> Mapping[str, float]:
    """Return those of some facts that a text has."""
    found = numbers_in(text) | set(words_of(text))
    return {fact: worth for fact, worth in facts.items() if fact in found}
