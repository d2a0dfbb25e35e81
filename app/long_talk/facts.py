"""Facts of a document that can be asked for and checked: sentences that go on with a number or a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.ledger.sentences import sentences

LEAST_WORDS, MOST_WORDS = 8, 40
"""Shorter sentences say too little by themselves, longer ones are seldom sentences."""
LEAST_SMALL_SHARE = 0.6
"""So many words of a sentence begin with a small letter; of a list of names, fewer do."""
_ANSWERS = (
    re.compile(r"(?<!Figure )(?<!Section )(?<!Table )(?<![\w.,(\[-])\d[\d.,:]*\d%?(?![\w-])"),
    re.compile(r"(?<![\w-])(?!Figure|Section|Table)[A-Z][^\W_]{2,}(?![\w-])"),
)
"""Numbers of two digits or more and names, but none that only refer to something."""
_LEAST_BEGINNING = 3
"""So many words of a sentence are given, at least: enough to find it by."""


@dataclass(frozen=True)
class Fact:
    """A sentence of an excerpt, and a number or a name in it.

    Attributes:
        excerpts: indexes of the excerpts that have the number or name, that of the sentence first.
        sentence: the sentence.
        answer: the number or name.
    """

    excerpts: tuple[int, ...]
    sentence: str
    answer: str

    @property
    def question(self) -> str:
        """What is asked to have it told: even small models can repeat a sentence."""
        beginning = _before(self.answer, self.sentence)
        return f"Repeat the whole sentence of the document that begins with these words: {beginning}"

    def is_in(self, text: str) -> bool:
        """Whether a text has the number or name, as a whole word."""
        return bool(_whole(self.answer).search(text))


def find_facts(excerpts: Sequence[str], most_each: int) -> tuple[Fact, ...]:
    """Return up to so many facts of each excerpt, those first that fewest other excerpts have.

    No two have the same answer or are of the same sentence.
    """
    found: list[Fact] = []
    for index in range(len(excerpts)):
        candidates = sorted(_candidates(excerpts, index), key=lambda fact: len(fact.excerpts))
        num_before = len(found)
        for fact in candidates:
            is_new = all(fact.answer != other.answer and fact.sentence != other.sentence for other in found)
            if is_new and len(found) - num_before < most_each:
                found.append(fact)
    return tuple(found)


def _candidates(excerpts: Sequence[str], index: int) -> Iterator[Fact]:
    whole_text = "\n".join(excerpts)
    for sentence in filter(_is_plain, sentences(excerpts[index])):
        for answer in _answers(sentence, whole_text):
            whole = _whole(answer)
            others = (other for other, text in enumerate(excerpts) if other != index and whole.search(text))
            yield Fact((index, *others), sentence, answer)


def _is_plain(sentence: str) -> bool:
    words = sentence.split()
    num_small = sum(word[0].islower() for word in words)
    is_ended = sentence.endswith((".", "!", "?"))
    return (
        is_ended and LEAST_WORDS <= len(words) <= MOST_WORDS and num_small >= LEAST_SMALL_SHARE * len(words)
    )


def _answers(sentence: str, text: str) -> Iterator[str]:
    """Yield the numbers, then the names behind the first words; what a text also writes small is no name."""
    for answer in (match.group() for pattern in _ANSWERS for match in pattern.finditer(sentence)):
        is_behind = len(_before(answer, sentence).split()) >= _LEAST_BEGINNING
        is_word = answer.isalpha() and _whole(answer.lower(), re.NOFLAG).search(text)
        if is_behind and not is_word:
            yield answer


def _before(answer: str, sentence: str) -> str:
    return _whole(answer).split(sentence, maxsplit=1)[0].rstrip()


def _whole(answer: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", flags)
