"""An extract of a conversation or document: its own sentences, chosen by rules.

Sentences are taken one after another by what they tell that none before did, for each token that they take:
numbers, names, quoted terms and the words that the text is about, as in Lin and Bilmes, "A Class of
Submodular Functions for Document Summarization" (2011). How a question or an answer begins counts more, and
so does a question that nothing answers.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ledger.sentences import sentences, words_of
from app.ledger.summary_request import SourcePart
from app.splitting import CountTokens

NUMBER_WEIGHT, NAME_WEIGHT, QUOTED_WEIGHT = 3.0, 2.5, 2.0
"""What these count, beside a word that the text is about, which counts about 1."""
BEGINNING_WEIGHT, OPEN_QUESTION_WEIGHT = 4.0, 12.0
_SENTENCE_COST = 4
"""Tokens that a sentence costs beside its own, so that the shortest are not always the best."""
_LEAST_LETTERS = 3
_HEADING_WORDS = 6
_HEADING_SHARE = 0.5
"""What a few words without an end, such as a heading, count beside a sentence."""
_NUMBERING = re.compile(r"^(?:[-*•·–—#]+|\d+(?:\.\d+)*[.)]?)\s+")
_NUMBER = re.compile(r"\d")
_QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{2,60})[”“»」』\"]")
_CAPITALISED = re.compile(r"[^\W\d_]\w+")
_QUESTION_ENDS = ("?", "？", "؟")
_ENDS = tuple('.!?…。！？؟۔।｡"”’»」』)）')
_UNSPACED_ENDS = tuple("。！？｡”’」』）")


@dataclass(frozen=True)
class _Sentence:
    text: str
    part: int
    num_tokens: int
    bonus: float
    weights: Mapping[str, float]

    def gain(self, told: set[str]) -> float:
        """Return what it tells that is not told yet, for each token."""
        new = sum(weight for word, weight in self.weights.items() if word not in told)
        share = _HEADING_SHARE if self._is_heading else 1.0
        return share * (self.bonus + new) / (self.num_tokens + _SENTENCE_COST)

    @property
    def _is_heading(self) -> bool:
        is_short = len(self.weights) < _HEADING_WORDS
        return is_short and (bool(_NUMBERING.match(self.text)) or not self.text.endswith(_ENDS))


def extract(parts: Sequence[SourcePart], most_tokens: int, count_tokens: CountTokens) -> str:
    """Return sentences of parts in their order, at most so many tokens, the same each time.

    Each line is one part, behind its speaker. Sentences are whole; only where none fits, the beginning of
    one stands alone. Empty only where the parts are, or not even a character fits.
    """
    found = _weighed(parts, count_tokens)
    chosen = _chosen(found, most_tokens)
    while chosen:
        text = _composed(parts, [found[index] for index in sorted(chosen)])
        if count_tokens(text) <= most_tokens:
            return text
        chosen.pop()
    best_first = sorted(found, key=lambda sentence: sentence.gain(set()), reverse=True)
    whole = (each.text for each in best_first if each.num_tokens <= most_tokens)
    return next(whole, "") or (_beginning(best_first[0].text, most_tokens, count_tokens) if found else "")


def _weighed(parts: Sequence[SourcePart], count_tokens: CountTokens) -> list[_Sentence]:
    split = [sentences(part.text) for part in parts]
    weight_of = _Weights([text for texts in split for text in texts])
    return [
        _Sentence(
            text,
            part,
            count_tokens(text),
            BEGINNING_WEIGHT * (place == 0)
            + OPEN_QUESTION_WEIGHT * (part == len(split) - 1 and text.endswith(_QUESTION_ENDS)),
            weight_of(text),
        )
        for part, texts in enumerate(split)
        for place, text in enumerate(texts)
    ]


class _Weights:
    """What the words of a sentence count in a text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._num_texts = len(texts)
        self._occurrences = Counter(word for text in texts for word in words_of(text))
        self._texts_with = Counter(word for text in texts for word in set(words_of(text)))
        self._names = _names(texts)

    def __call__(self, text: str) -> dict[str, float]:
        weights = {word: self._weight(word) for word in words_of(_NUMBERING.sub("", text, count=1))}
        for quoted in _QUOTED.findall(text):
            weights |= {word: max(weights.get(word, 0), QUOTED_WEIGHT) for word in words_of(quoted)}
        return weights

    def _weight(self, word: str) -> float:
        if _NUMBER.search(word):
            return NUMBER_WEIGHT
        if word in self._names:
            return NAME_WEIGHT
        if len(word) < _LEAST_LETTERS and word.isascii():
            return 0.0
        rarity = math.log(1 + self._num_texts / self._texts_with[word]) / math.log(1 + self._num_texts)
        return rarity * (1 + math.log(self._occurrences[word]))


def _names(texts: Sequence[str]) -> set[str]:
    """Return words that have a capital within sentences and are nowhere written small."""
    capitalised, small = set(), set()
    for text in texts:
        for number, match in enumerate(_CAPITALISED.finditer(text)):
            word = match.group()
            if word.islower():
                small.add(word)
            elif number:
                capitalised.add(word.casefold())
    return capitalised - small


def _chosen(found: Sequence[_Sentence], most_tokens: int) -> list[int]:
    """Return the indices of sentences that fit, the best first.

    What a sentence gains only falls as others are taken, so one that is still the best after it was weighed
    again is the best of all.
    """
    told: set[str] = set()
    chosen: list[int] = []
    room = most_tokens
    waiting = [(-sentence.gain(told), index) for index, sentence in enumerate(found)]
    heapq.heapify(waiting)
    while waiting:
        _, index = heapq.heappop(waiting)
        sentence = found[index]
        if sentence.num_tokens > room:
            continue
        gain = sentence.gain(told)
        if waiting and -gain > waiting[0][0]:
            heapq.heappush(waiting, (-gain, index))
            continue
        if gain <= 0:
            break
        chosen.append(index)
        told.update(sentence.weights)
        room -= sentence.num_tokens
    return chosen


def _composed(parts: Sequence[SourcePart], chosen: Sequence[_Sentence]) -> str:
    lines: dict[int, str] = {}
    for sentence in chosen:
        speaker = parts[sentence.part].speaker
        line = lines.get(sentence.part)
        if line is None:
            lines[sentence.part] = f"{speaker}: {sentence.text}" if speaker else sentence.text
        else:
            between = "" if line.endswith(_UNSPACED_ENDS) else " "
            lines[sentence.part] = f"{line}{between}{sentence.text}"
    return "\n".join(lines.values())


def _beginning(sentence: str, most_tokens: int, count_tokens: CountTokens) -> str:
    """Return as many words of a sentence as fit; of a word that is too long, as many characters."""
    words = [match.end() for match in re.finditer(r"\S+", sentence)]
    return _longest(sentence, words, most_tokens, count_tokens) or _longest(
        sentence, range(1, len(sentence) + 1), most_tokens, count_tokens
    )


def _longest(sentence: str, ends: Sequence[int], most_tokens: int, count_tokens: CountTokens) -> str:
    """Return the longest beginning at one of these ends that fits, found by halving."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(sentence[: ends[middle - 1]]) <= most_tokens:
            low = middle
        else:
            high = middle - 1
    return sentence[: ends[low - 1]] if low else ""
