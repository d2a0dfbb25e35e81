"""Whether what a model wrote is a summary of the text: by counting words, as nothing else may judge it."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from app.ledger.facts import facts_of, kept_facts, numbers_in
from app.ledger.sentences import sentences, whole_sentences, words_of
from app.ledger.summary_request import PartKind, SourcePart
from app.segments.splitting import CountTokens

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
_LEAST_DIGITS = 2
"""A number of fewer may be counted rather than told."""
_LEAST_FACTS = 2.0
"""With fewer of them in an extract there is nothing to compare with."""
_LEAST_KEPT = 0.4
"""Share that a summary keeps of the facts that an extract of its length keeps."""
_COLONS = (":", "：")
_MARKUP = "*_# \n\t"
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
    FORGETFUL = "The model's summary left out most names, numbers and dates"
    FORGOT_EARLIER = "The model's summary left out what was summarized before"


def finished(text: str, has_ended: bool, most_tokens: int, count_tokens: CountTokens) -> str:
    """Return a text that is at most so many tokens; cut behind a sentence, empty where none fits.

    What ends with a colon is not finished, whoever ended it.

    Args:
        text: what was written.
        has_ended: whether its end is meant as such.
        most_tokens: what it may have.
        count_tokens: counts them.
    """
    if not has_ended:
        text = whole_sentences(text)
    while text and (count_tokens(text) > most_tokens or text.rstrip(_MARKUP).endswith(_COLONS)):
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


def forgets(text: str, extract: str, parts: Sequence[SourcePart]) -> Flaw | None:
    """Return what is wrong with a summary that keeps far fewer facts than an extract, None where it does not.

    What earlier summaries tell has to be kept as well: it is nowhere else.

    Args:
        text: the summary.
        extract: sentences of the same parts, about as long.
        parts: what both are of.
    """
    facts = facts_of(parts)
    earlier = "\n".join(part.text for part in parts if part.kind is PartKind.EARLIER)
    for some, flaw in ((facts, Flaw.FORGETFUL), (kept_facts(earlier, facts), Flaw.FORGOT_EARLIER)):
        yardstick = sum(kept_facts(extract, some).values())
        if yardstick >= _LEAST_FACTS and sum(kept_facts(text, some).values()) < _LEAST_KEPT * yardstick:
            return flaw
    return None


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
    numbers = {number for number in numbers_in(text) if len(number) >= _LEAST_DIGITS}
    return len(numbers - numbers_in(source)) / len(numbers) if numbers else 0.0


def _echoed_share(text: str, instruction: str) -> float:
    runs, asked = list(_runs(text)), set(_runs(instruction))
    return sum(run in asked for run in runs) / len(runs) if runs else 0.0


def _runs(text: str) -> Iterator[tuple[str, ...]]:
    words = words_of(text)
    return zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False)
