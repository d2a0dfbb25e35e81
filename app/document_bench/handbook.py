"""A generated handbook of any length with facts planted in it; the same one for the same numbers."""

from __future__ import annotations

import functools
import importlib.resources
import random
import string
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.document_bench.facts import MONTHS, FactKind, PlantedFact
from engine.errors import OctavoError

SEED = 7
SECTION_TOKENS = 450
"""About so many tokens has a section; at most one fact is asked for of each."""
SECTIONS_PER_CHAPTER = 9
NUM_WRONG = 2
"""So many sentences of the same form about other places stand in the section of each fact."""
_PARAGRAPH_SENTENCES = (3, 7)
_LIST_SHARE, _TABLE_SHARE = 0.2, 0.15
_LETTERS = "BDFGHJKLMNPRSTVW"


@dataclass(frozen=True)
class Handbook:
    """A text and what is planted in it.

    Attributes:
        title: its name.
        text: Markdown.
        facts: in the order of the text.
    """

    title: str
    text: str
    facts: tuple[PlantedFact, ...]


def handbook(num_tokens: int, num_facts: int, count_tokens: Callable[[str], int]) -> Handbook:
    """Return a handbook of about so many tokens; its facts lie evenly over it, of each kind as many.

    Raises:
        OctavoError: so many facts need a longer text, or more names and places than there are.
    """
    num_sections = max(1, num_tokens // SECTION_TOKENS)
    most = min(num_sections, _most_facts())
    if num_facts > most:
        raise OctavoError(
            f"A handbook of {num_tokens:,} tokens has room for {most} facts, not for {num_facts}. Ask for a "
            "longer one or for fewer facts."
        )
    return _Writer(num_tokens, num_sections, num_facts, count_tokens).handbook()


@functools.cache
def _source() -> dict[str, Any]:
    file = importlib.resources.files("resources").joinpath("bench/handbook.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def _most_facts() -> int:
    """Return how many facts there can be: names are never used twice, nor a place in the same form."""
    num_kinds = len(FactKind)
    forms = [fact["kind"] for fact in _source()["fact"]]
    places = len(_lines(_source()["places"]))
    pairs = min(forms.count(kind.value) for kind in FactKind) * places
    return num_kinds * (min(pairs, len(_source()["last_names"].split())) // (NUM_WRONG + 1))


@dataclass(frozen=True)
class _Planted:
    """A fact before it has its place in the text: its sentence, and those with wrong answers."""

    kind: FactKind
    question: str
    answer: str
    wrong: tuple[str, ...]
    sentence: str
    others: tuple[str, ...]


class _Answers:
    """Answers of each kind, none of them twice."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._given: set[str] = set()
        self._last_names = _source()["last_names"].split()
        chance.shuffle(self._last_names)

    def new(self, form: Mapping[str, Any]) -> str:
        """Return another answer for a form of facts."""
        while (answer := self._any(form)) in self._given:
            pass
        self._given.add(answer)
        return answer

    def _any(self, form: Mapping[str, Any]) -> str:
        chance = self._chance
        match FactKind(form["kind"]):
            case FactKind.NUMBER:
                return f"{chance.randrange(form['least'], form['most']):,}"
            case FactKind.NAME:
                return f"{chance.choice(_source()['first_names'].split())} {self._last_names.pop()}"
            case FactKind.DATE:
                year = chance.randrange(1961, 2049)
                return f"{chance.randrange(1, 29)} {chance.choice(MONTHS)} {year}"
            case FactKind.CODE:
                return f"{chance.choice(_LETTERS)}-{chance.randrange(11, 99)}"


@dataclass
class _Writer:
    """Writes one handbook."""

    num_tokens: int
    num_sections: int
    num_facts: int
    count_tokens: Callable[[str], int]
    _chance: random.Random = field(default_factory=lambda: random.Random(SEED))
    _blocks: list[str] = field(default_factory=list)
    _num_chars: int = 0
    _facts: list[PlantedFact] = field(default_factory=list)
    _told_tokens: int = 0

    def handbook(self) -> Handbook:
        """Write it."""
        planted = iter(self._planted())
        for section in range(self.num_sections):
            has_fact = section * self.num_facts // self.num_sections != (
                (section + 1) * self.num_facts // self.num_sections
            )
            self._section(section, next(planted) if has_fact else None)
        return Handbook(_source()["title"], "\n\n".join(self._blocks), tuple(self._facts))

    # Facts.

    def _planted(self) -> list[_Planted]:
        forms: dict[FactKind, list[dict[str, Any]]] = {kind: [] for kind in FactKind}
        for form in _source()["fact"]:
            forms[FactKind(form["kind"])].append(form)
        places = {form["sentence"]: self._shuffled(_lines(_source()["places"])) for form in _source()["fact"]}
        answers, kinds = _Answers(self._chance), list(FactKind)
        found = []
        for number in range(self.num_facts):
            kind = kinds[number % len(kinds)]
            form = forms[kind][number // len(kinds) % len(forms[kind])]
            asks = "otherwise" if number // len(kinds) // len(forms[kind]) % 2 else "question"
            found.append(self._plant(form, form[asks], places[form["sentence"]], answers))
        return self._shuffled(found)

    def _plant(
        self, form: Mapping[str, Any], question: str, places: list[str], answers: _Answers
    ) -> _Planted:
        is_code = FactKind(form["kind"]) is FactKind.CODE
        told = [
            (places.pop(), answers.new(form), answers.new(form) if is_code else "")
            for _ in range(NUM_WRONG + 1)
        ]
        sentences = [
            string.Template(form["sentence"]).substitute(place=place, answer=answer, other=other)
            for place, answer, other in told
        ]
        place, answer, _ = told[0]
        wrong = [each for _, each, _ in told[1:]] + [other for _, _, other in told if other]
        asked = string.Template(question).substitute(place=place)
        return _Planted(
            FactKind(form["kind"]), asked, answer, tuple(wrong), sentences[0], tuple(sentences[1:])
        )

    # Text.

    def _section(self, number: int, planted: _Planted | None) -> None:
        chapter, place = divmod(number, SECTIONS_PER_CHAPTER)
        if place == 0:
            chapters = _lines(_source()["chapters"])
            self._add(f"# {chapter + 1} {chapters[chapter % len(chapters)]}")
        sections = _lines(_source()["sections"])
        self._add(f"## {chapter + 1}.{place + 1} {sections[self._chance.randrange(len(sections))]}")
        end = self.num_tokens * (number + 1) // self.num_sections
        waiting = [] if planted is None else self._shuffled([planted.sentence, *planted.others])
        while self._told_tokens < end or waiting:
            self._block(waiting.pop() if waiting else "", planted)

    def _block(self, sentence: str, planted: _Planted | None) -> None:
        """Add a paragraph, with a sentence in it where there is one; else a list or a table at times."""
        kind = 1.0 if sentence else self._chance.random()
        if kind < _LIST_SHARE:
            self._add("\n".join(f"- {item}" for item in self._filled("items", (3, 6))))
        elif kind < _LIST_SHARE + _TABLE_SHARE:
            self._add(self._table())
        else:
            sentences = list(self._filled("sentences", _PARAGRAPH_SENTENCES))
            if sentence:
                sentences.insert(self._chance.randrange(1, len(sentences)), sentence)
            self._add(" ".join(sentences))
        if planted is not None and sentence == planted.sentence:
            start = self._num_chars - len(self._blocks[-1]) - 2 + self._blocks[-1].index(sentence)
            self._facts.append(
                PlantedFact(
                    planted.kind,
                    planted.question,
                    planted.answer,
                    planted.wrong,
                    start,
                    start + len(sentence),
                )
            )

    def _add(self, block: str) -> None:
        self._blocks.append(block)
        self._num_chars += len(block) + 2
        self._told_tokens += self.count_tokens(f"{block}\n\n")

    def _filled(self, kind: str, counts: tuple[int, int]) -> Iterator[str]:
        templates = _lines(_source()["prose"][kind])
        for template in self._chance.sample(templates, self._chance.randint(*counts)):
            yield self._fill(template)

    def _fill(self, template: str) -> str:
        """Return a template with other words each time that a kind of words is named."""
        text = template
        for kind, listed in _source()["words"].items():
            for word in self._chance.sample(listed.split("|"), 2):
                text = text.replace(f"${kind}", word, 1)
                text = text.replace(f"${kind.capitalize()}", word[0].upper() + word[1:], 1)
        return text

    def _table(self) -> str:
        rows = [
            f"| {thing} | {material} | {self._chance.randrange(2, 90)} |"
            for thing, material in zip(
                self._chance.sample(_source()["words"]["thing"].split("|"), 4),
                self._chance.sample(_source()["words"]["material"].split("|"), 4),
                strict=True,
            )
        ]
        return "\n".join(["| Item | Material | Pieces |", "| --- | --- | --- |", *rows])

    def _shuffled(self, some: Sequence[Any]) -> list[Any]:
        return self._chance.sample(some, len(some))
