"""An extract of a conversation or document: its own sentences, chosen by rules.

Sentences are taken one after another by what they tell that none before did, for each token that they take:
numbers, names, quoted terms and the words that the text is about, as in Lin and Bilmes, "A Class of
Submodular Functions for Document Summarization" (2011). What the user says and what documents say counts more
than answers and what is only asked, and a question that nothing answers counts most. Sentences of earlier
summaries, which stand for many turns, have a share of the room for themselves.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.ledger.facts import names_in
from app.ledger.sentences import sentences, words_of
from app.ledger.summary_request import PartKind, SourcePart
from app.segments.splitting import CountTokens

NUMBER_WEIGHT, NAME_WEIGHT, QUOTED_WEIGHT = 4.0, 3.0, 2.0
"""What these count, beside a word that the text is about, which counts about 1."""
BEGINNING_WEIGHT, OWN_WEIGHT, OPEN_QUESTION_WEIGHT = 4.0, 2.0, 20.0
"""What the beginning of a document counts, that the user speaks of what is their own, and a question of the
user that nothing answers."""
_OTHER_SHARE, _LESSER_SHARE = 0.6, 0.4
"""What other words of the user count beside facts and what is their own; and answers and what is asked."""
_SENTENCE_COST = 4
"""Tokens that a sentence costs beside its own, so that the shortest are not always the best."""
_LEAST_LETTERS = 3
_HEADING_WORDS = 6
_HEADING_SHARE = 0.5
"""What a few words without an end, such as a heading, count beside a sentence."""
_OWN = frozenset(
    word
    for words in (
        "i my mine we our",
        "ich mein meine meinen meinem meiner wir unser unsere",
        "je j mon ma mes nous notre nos",
        "yo mi mis nosotros nuestro nuestra",
        "io mio mia noi nostro nostra",
        "eu meu minha nós nosso nossa",
        "ik mijn wij we ons onze",
        "ja mój moja mam my nasz",
        "я мой моя мне мы наш наша",
    )
    for word in words.split()
)
"""Words in which people speak of what is their own."""
_GAP = "…"
"""Stands where sentences of one speaker were left out between others."""
_NUMBERING = re.compile(r"^(?:[-*•·–—#]+|\d+(?:\.\d+)*[.)]?)\s+")
_NUMBER = re.compile(r"\d")
_QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{2,60})[”“»」』\"]")
_QUESTION_ENDS = ("?", "？", "؟")
_ENDS = tuple('.!?…。！？؟۔।｡"”’»」』)）')
_UNSPACED_ENDS = tuple("。！？｡”’」』）")


@dataclass(frozen=True)
class _Sentence:
    text: str
    part: int
    place: int
    num_tokens: int
    lead_tokens: int
    share: float
    bonus: float
    weights: Mapping[str, float]

    def gain(self, told: set[str]) -> float:
        """Return what it tells that is not told yet, for each token."""
        new = sum(weight for word, weight in self.weights.items() if word not in told)
        return self.share * (self.bonus + new) / (self.num_tokens + _SENTENCE_COST)


def extract(
    parts: Sequence[SourcePart], most_tokens: int, count_tokens: CountTokens, earlier_share: float = 0.0
) -> str:
    """Return sentences of parts in their order, at most so many tokens, the same each time.

    Each line is one part, behind its speaker. Sentences are whole; only where none fits, the beginning of
    one stands alone. Where sentences between two of a line are left out, it has ` … `. Empty only where the
    parts are, or not even a character fits.

    Args:
        parts: what was said.
        most_tokens: what it may have.
        count_tokens: counts them.
        earlier_share: of these for sentences of earlier summaries, as far as they need it, 0 to 1.
    """
    found = _weighed(parts, count_tokens)
    chosen = _chosen(found, parts, most_tokens, earlier_share)
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
    leads = [count_tokens(f"{part.speaker}: ") if part.speaker else 0 for part in parts]
    return [
        _Sentence(
            text,
            number,
            place,
            count_tokens(text),
            leads[number],
            _share(part, text, weights),
            _bonus(part, text, place == 0, _is_answered(parts, number)),
            weights,
        )
        for number, (part, texts) in enumerate(zip(parts, split, strict=True))
        for place, (text, weights) in enumerate(zip(texts, map(weight_of, texts), strict=True))
        if text != _GAP
    ]


def _share(part: SourcePart, text: str, weights: Mapping[str, float]) -> float:
    """Return what a sentence counts by who says it, and whether it says anything."""
    share = 1.0
    if part.is_answer or (part.kind is not PartKind.DOCUMENT and text.endswith(_QUESTION_ENDS)):
        share = _LESSER_SHARE
    elif part.kind is PartKind.USER and not _is_own(text) and max(weights.values(), default=0) < NAME_WEIGHT:
        share = _OTHER_SHARE
    return share * (_HEADING_SHARE if _is_heading(text) else 1.0)


def _is_own(text: str) -> bool:
    return not _OWN.isdisjoint(words_of(text))


def _is_heading(text: str) -> bool:
    """Whether it is a few words without an end, or only begins what follows."""
    is_short = len(set(words_of(text))) < _HEADING_WORDS
    is_begun = text.endswith((":", "："))
    return is_begun or (is_short and (bool(_NUMBERING.match(text)) or not text.endswith(_ENDS)))


def _bonus(part: SourcePart, text: str, is_first: bool, is_answered: bool) -> float:
    """Return what a sentence counts beside its words."""
    if part.kind is PartKind.USER:
        if text.endswith(_QUESTION_ENDS):
            return 0.0 if is_answered else OPEN_QUESTION_WEIGHT
        return OWN_WEIGHT * _is_own(text)
    return BEGINNING_WEIGHT * is_first if part.kind is PartKind.DOCUMENT else 0.0


def _is_answered(parts: Sequence[SourcePart], number: int) -> bool:
    return any(part.kind is PartKind.ANSWER for part in parts[number + 1 : number + 2])


class _Weights:
    """What the words of a sentence count in a text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._num_texts = len(texts)
        self._occurrences = Counter(word for text in texts for word in words_of(text))
        self._texts_with = Counter(word for text in texts for word in set(words_of(text)))
        self._names = names_in(texts)

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


def _chosen(
    found: Sequence[_Sentence], parts: Sequence[SourcePart], most_tokens: int, earlier_share: float
) -> list[int]:
    """Return the indices of sentences that fit, the best first, but those of the earlier share before all."""
    earlier = [index for index, each in enumerate(found) if parts[each.part].kind is PartKind.EARLIER]
    choice = _Choice(found)
    choice.take(earlier, int(earlier_share * most_tokens))
    choice.take(set(range(len(found))) - set(choice.taken), most_tokens)
    return choice.taken


class _Choice:
    """Takes sentences, the best first, as long as there is room."""

    def __init__(self, found: Sequence[_Sentence]) -> None:
        self.taken: list[int] = []
        self.num_tokens = 0
        self._found = found
        self._told: set[str] = set()
        self._parts: set[int] = set()

    def take(self, indices: Iterable[int], most_tokens: int) -> None:
        """Take some of these sentences until all that is taken has so many tokens.

        What a sentence gains only falls as others are taken, so one that is still the best after it was
        weighed again is the best of all.
        """
        waiting = [(-self._found[index].gain(self._told), index) for index in indices]
        heapq.heapify(waiting)
        while waiting:
            _, index = heapq.heappop(waiting)
            if self.num_tokens + self._cost(index) > most_tokens:
                continue
            gain = self._found[index].gain(self._told)
            if waiting and -gain > waiting[0][0]:
                heapq.heappush(waiting, (-gain, index))
                continue
            if gain <= 0:
                break
            self._take(index)

    def _cost(self, index: int) -> int:
        sentence = self._found[index]
        return sentence.num_tokens + (0 if sentence.part in self._parts else sentence.lead_tokens)

    def _take(self, index: int) -> None:
        self.num_tokens += self._cost(index)
        self.taken.append(index)
        self._told.update(self._found[index].weights)
        self._parts.add(self._found[index].part)


def _composed(parts: Sequence[SourcePart], chosen: Sequence[_Sentence]) -> str:
    lines: dict[int, str] = {}
    before: dict[int, int] = {}
    for sentence in chosen:
        speaker = parts[sentence.part].speaker
        line = lines.get(sentence.part)
        if line is None:
            lines[sentence.part] = f"{speaker}: {sentence.text}" if speaker else sentence.text
        else:
            between = "" if line.endswith(_UNSPACED_ENDS) else " "
            if sentence.place > before[sentence.part] + 1:
                between = f" {_GAP} "
            lines[sentence.part] = f"{line}{between}{sentence.text}"
        before[sentence.part] = sentence.place
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
