"""The sentences of a text that a note rests on, or that fit a question best."""

from __future__ import annotations

from collections.abc import Callable

from app.lookup.words import Vocabulary, vocabulary_of
from app.sources.sentence_spans import sentence_spans
from app.sources.words import Weights, full_weights, told_words

LEAST_SHARED = 1.0
"""A note rests on sentences that share at least this with it: a rare word, or part of a name or number."""
LEAST_MORE = 0.25
"""A neighbour belongs to them that shares this much more, as a share of what the best one has."""
MOST_SENTENCES = 5
LEAST_FITTING = 0.6
"""A sentence fits a question that has this share of its words at least;"""
LEAST_RELATED = 0.35
"""one that has less than this is not about it, as far as words tell."""
_GAP = "…"


class _Sentences:
    """The sentences of a text, and what they share with something else."""

    def __init__(self, text: str, other: str) -> None:
        self.spans = sentence_spans(text)
        self.texts = [text[start:stop] for start, stop in self.spans]
        vocabulary: Vocabulary = vocabulary_of(other, text)
        words = [told_words(each, vocabulary) for each in self.texts]
        self._weights = Weights(self.texts, words)
        self._told = told_words(other, vocabulary)
        self.shared = [self._weights.shared(each, self._told) for each in words]

    def weight_of(self, other: str) -> float:
        """Return what all words count of what the sentences are held against; absent ones count as rare."""
        return sum(
            self._weights.of(word) or weight for word, weight in full_weights(other, self._told).items()
        )

    def gain(self, index: int, told: set[str]) -> float:
        """Return what a sentence shares that has not been told."""
        return sum(weight for word, weight in self.shared[index].items() if word not in told)


def locate(note: str, text: str) -> tuple[int, int] | None:
    """Return where the sentences in a row lie that a note rests on: first character, and behind the last.

    None where no sentence shares a number, a name or a rare word with it.
    """
    found = _Sentences(text, note)
    gains = [found.gain(index, set()) for index in range(len(found.spans))]
    if max(gains, default=0.0) < LEAST_SHARED:
        return None
    first = gains.index(max(gains))
    stop, told = first + 1, set(found.shared[first])
    least = LEAST_MORE * gains[first]
    while stop - first < MOST_SENTENCES:
        before = found.gain(first - 1, told) if first else 0.0
        behind = found.gain(stop, told) if stop < len(gains) else 0.0
        if max(before, behind) < least:
            break
        if before > behind:
            first -= 1
            told.update(found.shared[first])
        else:
            told.update(found.shared[stop])
            stop += 1
    return found.spans[first][0], found.spans[stop - 1][1]


def best_sentences(question: str, text: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return the sentences of a text that fit a question best, in the order of the text.

    At most so many tokens; ` … ` stands where sentences between two were left out. Empty where none shares
    a word that means something with the question, or none fits.
    """
    found = _Sentences(text, question)
    chosen: list[int] = []
    told: set[str] = set()
    waiting = set(range(len(found.texts)))
    while waiting:
        best = max(waiting, key=lambda index: (found.gain(index, told), -index))
        if found.gain(best, told) <= 0:
            break
        waiting.remove(best)
        composed = _composed(found.texts, sorted([*chosen, best]))
        if count_tokens(composed) <= most_tokens:
            chosen.append(best)
            told.update(found.shared[best])
    return _composed(found.texts, sorted(chosen))


def fitting_sentence(question: str, text: str, most_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """Return the sentence of a text that fits a question best, the first one that does.

    Empty where none fits, or it has more than `most_tokens`.
    """
    sentence, share = _closest(question, text)
    return sentence if share >= LEAST_FITTING and count_tokens(sentence) <= most_tokens else ""


def is_related(question: str, text: str) -> bool:
    """Return whether a sentence of a text has enough words of a question to be about it."""
    return _closest(question, text)[1] >= LEAST_RELATED


def _closest(question: str, text: str) -> tuple[str, float]:
    """Return the sentence that has most of a question's words, and the share of them that it has, 0 to 1.

    Names and numbers count more than other words, and words that many sentences have less.
    """
    found = _Sentences(text, question)
    gains = [found.gain(index, set()) for index in range(len(found.texts))]
    most = max(gains, default=0.0)
    if not most:
        return "", 0.0
    return " ".join(found.texts[gains.index(most)].split()), most / found.weight_of(question)


def _composed(texts: list[str], chosen: list[int]) -> str:
    parts: list[str] = []
    for number, index in enumerate(chosen):
        if number and index > chosen[number - 1] + 1:
            parts.append(_GAP)
        parts.append(" ".join(texts[index].split()))
    return " ".join(parts)
