"""Facts that are planted in a text, and whether an answer tells them."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from app.ledger.facts import numbers_in

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_CITATION = re.compile(r"\[[\d\s,;–-]*\]")
_CODE = re.compile(r"\b([A-Za-z])[\s-]?(\d+)\b")


class FactKind(enum.Enum):
    """What is asked for."""

    NUMBER = "number"
    NAME = "name"
    DATE = "date"
    CODE = "code"
    """A letter and a number, in a sentence of nested clauses that has another one as well."""


@dataclass(frozen=True)
class PlantedFact:
    """A fact of a text.

    Attributes:
        kind: what is asked for.
        question: asks for it.
        answer: the right answer, as the text has it.
        wrong: other answers that stand near it, as the text has them.
        start: the first character of its sentence in the text.
        stop: the one behind its last.
    """

    kind: FactKind
    question: str
    answer: str
    wrong: tuple[str, ...]
    start: int
    stop: int

    def is_told_by(self, words: str) -> bool:
        """Return whether words tell the right answer, however it is written, and no wrong one."""
        words = _CITATION.sub(" ", words)
        return _tells(self.kind, words, self.answer) and not any(
            _tells(self.kind, words, wrong) for wrong in self.wrong
        )


def _tells(kind: FactKind, words: str, answer: str) -> bool:
    match kind:
        case FactKind.NUMBER:
            return numbers_in(answer) <= numbers_in(words)
        case FactKind.NAME:
            return answer.split()[-1].casefold() in re.findall(r"\w+", words.casefold())
        case FactKind.DATE:
            return _tells_date(words, answer)
        case FactKind.CODE:
            return _codes(answer) <= _codes(words)


def _tells_date(words: str, answer: str) -> bool:
    """Return whether words have a date such as `14 March 2031`, or `2031-03-14`."""
    day, month, year = answer.split()
    numbers = [number.lstrip("0") for number in re.findall(r"\d+", words)]
    if not {day, year} <= set(numbers):
        return False
    numbers.remove(day)
    return month.casefold() in words.casefold() or str(MONTHS.index(month) + 1) in numbers


def _codes(words: str) -> set[tuple[str, str]]:
    return {(letter.casefold(), number) for letter, number in _CODE.findall(words)}
