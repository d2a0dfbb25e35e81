"""Looking up: the passages of texts that fit the words of a question, by BM25 and position.

The index is SQLite's FTS5, in memory. Scripts without blanks are written in overlapping pairs of characters.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlite_utils

from app.documents.places import Places
from app.lookup.excerpt import excerpt
from app.lookup.terms import Term, terms_of_question
from app.lookup.units import Unit, units_of
from app.lookup.words import folded, in_pairs, vocabulary_of, without_accents
from engine.cancel import CancelToken

HEADING_WEIGHT = 0.6
"""What a word in the title of a text or the headings above a passage counts beside one in it."""
NAME_WEIGHT = 2.0
"""What a number or name counts beside another word that is as rare."""
LEAST_COVERED = 0.35
"""Passages are relevant that have this share of the question's words, the rare ones counting more."""
LEAST_OF_BEST = 0.3
"""Passages that score less than this share of the best are left out."""
_COMPOUNDING = ("de", "nl")
"""Languages that write several words as one: a word that stands nowhere alone is looked for within others."""
_LEAST_WITHIN, _ENDING, _MOST_COMPOUNDS = 5, 2, 32
"""Letters of such a word at least, those that may be its ending, and the words that it is looked for in."""
_MOST_CANDIDATES = 200
_SAMPLE_CHARACTERS = 20_000
"""So much of all texts tells their language where the question does not."""
_BATCH_UNITS = 500
_CREATE = """
    create virtual table passages using fts5(
        heading, words, content='', tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co M*'"
    );
    create virtual table vocabulary using fts5vocab(passages, row);
"""


@dataclass(frozen=True)
class SearchedText:
    """A text that is searched.

    Attributes:
        text: its words.
        places: its headings: what stands below one is found by its words as well.
        title: what it is called, whose words are those of all its passages.
    """

    text: str
    places: Places
    title: str = ""


@dataclass(frozen=True)
class Passage:
    """A passage of a text that fits a question.

    Attributes:
        start: its first character.
        stop: the one behind its last.
        score: how well it fits, more is better; only to be compared within one answer of `LookUp.passages`.
        index: which text it is of, counted from 0.
    """

    start: int
    stop: int
    score: float
    index: int = 0


class LookUp:
    """An index of some texts, in memory; belongs to the thread that made it, and goes with it.

    Making it takes about half a second for a megabyte: keep it while the documents are used.

    Args:
        texts: those that are searched together: what is rare in all of them counts more.
        cancel: stops the making of the index.

    Raises:
        Cancelled: it was stopped.
    """

    def __init__(self, texts: Sequence[SearchedText], cancel: CancelToken | None = None) -> None:
        self._texts = [each.text for each in texts]
        self._units = [
            (index, unit)
            for index, each in enumerate(texts)
            for unit in units_of(each.text, each.places.headings)
        ]
        self._database = sqlite_utils.Database(memory=True)
        self._database.executescript(_CREATE)
        for rows in self._rows([each.title for each in texts], cancel or CancelToken()):
            self._database.conn.executemany(
                "insert into passages(rowid, heading, words) values (?, ?, ?)", rows
            )

    def _rows(self, titles: Sequence[str], cancel: CancelToken) -> Iterator[list[tuple[int, str, str]]]:
        for first in range(0, len(self._units), _BATCH_UNITS):
            cancel.check()
            yield [
                (
                    number,
                    in_pairs(folded(f"{titles[index]} / {unit.heading}")),
                    in_pairs(folded(self._words(index, unit))),
                )
                for number, (index, unit) in enumerate(self._units[first : first + _BATCH_UNITS], start=first)
            ]

    def _words(self, index: int, unit: Unit) -> str:
        return self._texts[index][unit.start : unit.stop]

    def passages(
        self,
        question: str,
        budget_tokens: int,
        count_tokens: Callable[[str], int],
        frame_tokens: Sequence[int] = (),
    ) -> tuple[Passage, ...]:
        """Return the passages that fit a question best, in the order of the texts, apart from each other.

        Empty where nothing is relevant: the rare words of the question are nowhere.

        Args:
            question: what is asked.
            budget_tokens: what all passages may have together.
            count_tokens: counts the tokens of a text.
            frame_tokens: what the first passage of each text takes more; nothing where empty.
        """
        terms = self._terms(question)
        scores = self._scores(terms) if terms else {}
        least = LEAST_OF_BEST * max(scores.values(), default=0.0)
        frames = dict(enumerate(frame_tokens))
        chosen: list[Passage] = []
        for number in sorted(scores, key=lambda number: (-round(scores[number], 6), number)):
            if scores[number] < least:
                break
            index, unit = self._units[number]
            text, room = self._words(index, unit).rstrip(), budget_tokens - frames.get(index, 0)
            first, stop = (0, len(text)) if chosen else excerpt(text, terms, room, count_tokens)
            num_tokens = count_tokens(text[first:stop])
            if first < stop and num_tokens <= room:
                chosen.append(Passage(unit.start + first, unit.start + stop, scores[number], index))
                budget_tokens = room - num_tokens
                frames[index] = 0
        return self._joined(sorted(chosen, key=lambda passage: (passage.index, passage.start)))

    def _terms(self, question: str) -> list[Term]:
        share = _SAMPLE_CHARACTERS // max(1, len(self._texts))
        vocabulary = vocabulary_of(question, " ".join(text[:share] for text in self._texts))
        terms = terms_of_question(question, vocabulary)
        if vocabulary.name not in _COMPOUNDING:
            return terms
        return [term if self._having(term) else self._within_words(term) for term in terms]

    def _within_words(self, term: Term) -> Term:
        """Return a term that stands nowhere as it is found within longer words."""
        if len(term.word) < _LEAST_WITHIN or not term.word.isalpha():
            return term
        stem = term.word[: max(_LEAST_WITHIN, len(term.word) - _ENDING)]
        rows = self._database.execute(
            "select term from vocabulary where term glob ? order by length(term), term limit ?",
            [f"*{without_accents(stem)}*", _MOST_COMPOUNDS],
        )
        forms = " OR ".join(f'"{word}"' for (word,) in rows)
        return dataclasses.replace(term, forms=forms, stem=stem) if forms else term

    def _scores(self, terms: Sequence[Term]) -> dict[int, float]:
        """Return how well units fit the terms, of those that have enough of them."""
        found = [self._having(term) for term in terms]
        weights = [self._weight(term, len(units)) for term, units in zip(terms, found, strict=True)]
        scores = {}
        for number, rank in self._ranked(terms):
            having = zip(weights, found, strict=True)
            covered = sum(weight for weight, units in having if number in units) / sum(weights)
            if covered >= LEAST_COVERED:
                scores[number] = rank * (0.5 + covered)
        return scores

    def _having(self, term: Term) -> frozenset[int]:
        rows = self._database.execute("select rowid from passages where passages match ?", [term.forms])
        return frozenset(number for (number,) in rows)

    def _weight(self, term: Term, num_units: int) -> float:
        """Return what a term counts, by how rare it is."""
        rarity = math.log(1 + len(self._units) / (num_units or 0.5))
        return rarity * (NAME_WEIGHT if term.is_name else 1.0)

    def _ranked(self, terms: Sequence[Term]) -> Iterator[tuple[int, float]]:
        """Yield the units that have any of the terms, the best first, with their BM25."""
        wanted = " OR ".join(dict.fromkeys(form for term in terms for form in (term.exact, term.forms)))
        yield from self._database.execute(
            "select rowid, -bm25(passages, ?, 1.0) as score from passages where passages match ?"
            " order by score desc, rowid limit ?",
            [HEADING_WEIGHT, wanted, _MOST_CANDIDATES],
        )

    def _joined(self, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """Join passages of a text with nothing but white space between them."""
        joined: list[Passage] = []
        for passage in passages:
            before = joined[-1] if joined else None
            if before is not None and self._follows(before, passage):
                joined.pop()
                score = max(before.score, passage.score)
                passage = dataclasses.replace(before, stop=passage.stop, score=score)
            joined.append(passage)
        return tuple(joined)

    def _follows(self, before: Passage, passage: Passage) -> bool:
        between = self._texts[passage.index][before.stop : passage.start]
        return before.index == passage.index and not between.strip()
