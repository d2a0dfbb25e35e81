"""Whether what a model wrote is a summary of the text: by counting words, as nothing else may judge it."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

from app.ledger.sentences import sentences, whole_sentences, words_of
from app.splitting import CountTokens

_RUN_WORDS = 4
_LEAST_RUNS = 8
_MOST_REPEATED = 0.3
"""Share of the runs of so many words that were there before."""
_LONG_SENTENCE = 6
"""A sentence of so many words is not said twice in a summary."""
_MOST_ECHOED = 0.3
"""Share of these runs that are in what the model was asked."""
_LEAST_SHARED = 0.5
"""Share of the longer words, and of the numbers, that have to be in the text."""
_MOST_INVENTED = 1 / 3
"""Share of the numbers of two digits and more that are not in the text; some may be sums or dates."""
_NUMBER = re.compile(r"\d{2,}")
_GROUPED = re.compile(r"(?<!\d)\d{1,3}(?:[.,'’\u00a0\u202f]\d{3})+(?!\d)")
"""A number with its thousands apart, which a model may write another way."""
_LONG = 4
_STEM = 6
"""Letters that tell words apart, so that other endings do not count."""


class Flaw(enum.Enum):
    """What makes a model's words no summary; the value says it for people."""

    EMPTY = "The model wrote no summary"
    UNFINISHED = "The model did not finish a sentence"
    REPEATED = "The model's summary repeated itself"
    ECHOED = "The model repeated what it was asked"
    FOREIGN = "The model's summary was not about this text"
    INVENTED = "The model's summary had numbers that are not in the text"


def finished(text: str, has_ended: bool, most_tokens: int, count_tokens: CountTokens) -> str:
    """Return a text that is at most so many tokens; cut behind a sentence, empty where none fits.

    Args:
        text: what was written.
        has_ended: whether its end is meant as such.
        most_tokens: what it may have.
        count_tokens: counts them.
    """
    if not has_ended:
        text = whole_sentences(text)
    while text and count_tokens(text) > most_tokens:
        text = whole_sentences(text[:-1])
    return text


def flaw_of(text: str, source: str, instruction: str) -> Flaw | None:
    """Return what is wrong with a summary, None where nothing is seen.

    Args:
        text: the summary.
        source: what it is a summary of.
        instruction: what the model was asked.
    """
    if not words_of(text):
        return Flaw.EMPTY
    if repeats(text):
        return Flaw.REPEATED
    if _echoed_share(text, instruction) > _MOST_ECHOED:
        return Flaw.ECHOED
    if shared_share(text, source) < _LEAST_SHARED:
        return Flaw.FOREIGN
    return Flaw.INVENTED if _invented_share(text, source) > _MOST_INVENTED else None


def repeats(text: str) -> bool:
    """Whether a text goes round in circles: by its runs of words, or a sentence that is there twice."""
    said = [
        words for sentence in sentences(text) if len(words := tuple(words_of(sentence))) >= _LONG_SENTENCE
    ]
    if len(said) > len(set(said)):
        return True
    runs = list(_runs(text))
    return len(runs) >= _LEAST_RUNS and 1 - len(set(runs)) / len(runs) > _MOST_REPEATED


def shared_share(text: str, source: str) -> float:
    """Return which part of the words of a summary that mean something are in its source, 0 to 1."""
    words = [word[:_STEM] for word in words_of(text) if _means_something(word)]
    known = {word[:_STEM] for word in words_of(source)}
    return sum(word in known for word in words) / len(words) if words else 0.0


def _means_something(word: str) -> bool:
    """Whether a word is long, a number, or of a script without spaces."""
    return len(word) >= _LONG or not (word.isascii() and word.isalpha())


def _invented_share(text: str, source: str) -> float:
    numbers = _numbers(text)
    return len(numbers - _numbers(source)) / len(numbers) if numbers else 0.0


def _numbers(text: str) -> set[str]:
    """Return the numbers of a text by their digits, whatever script these are in."""
    found = _NUMBER.findall(_GROUPED.sub(lambda grouped: re.sub(r"\D", "", grouped.group()), text))
    return {"".join(str(int(digit)) for digit in number) for number in found}


def _echoed_share(text: str, instruction: str) -> float:
    runs, asked = list(_runs(text)), set(_runs(instruction))
    return sum(run in asked for run in runs) / len(runs) if runs else 0.0


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = words_of(text)
    return zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False)
