from __future__ import annotations

import pytest

from app.document_bench.facts import FactKind, PlantedFact


def fact(kind: FactKind, answer: str, *wrong: str) -> PlantedFact:
    return PlantedFact(kind, "?", answer, wrong, 0, 1)


NUMBER = fact(FactKind.NUMBER, "4,350", "1,200")
NAME = fact(FactKind.NAME, "Miriam Okafor", "Tobias Haldane")
DATE = fact(FactKind.DATE, "3 March 2031", "8 June 1988")
CODE = fact(FactKind.CODE, "K-17", "M-94")


@pytest.mark.parametrize(
    ("planted", "answer"),
    [
        (NUMBER, "It holds 4,350 litres."),
        (NUMBER, "4350 litres [2]"),
        (NUMBER, "4.350 l"),
        (NAME, "MIRIAM OKAFOR does."),
        (NAME, "Ms Okafor [1, 3]."),
        (DATE, "On March 3, 2031."),
        (DATE, "2031-03-03"),
        (DATE, "03.03.2031"),
        (CODE, "The valve k17."),
        (CODE, "Valve K 17 is closed."),
    ],
)
def test_a_fact_is_told_however_it_is_written(planted: PlantedFact, answer: str) -> None:
    assert planted.is_told_by(answer)


@pytest.mark.parametrize(
    ("planted", "answer"),
    [
        (NUMBER, "It holds 43,500 litres."),
        (NUMBER, "4,350 or 1,200 litres."),
        (NUMBER, "It holds 1,200 litres [4350]."),
        (NUMBER, ""),
        (NAME, "Miriam does."),
        (NAME, "Okafors"),
        (NAME, "Okafor and Haldane."),
        (DATE, "In March 2031."),
        (DATE, "On 3 June 2031."),
        (DATE, "3 March 2031, not 8 June 1988"),
        (CODE, "The valve K-171."),
        (CODE, "The valve M-17."),
        (CODE, "K-17 or M-94"),
    ],
)
def test_a_fact_is_not_told_by_half_or_beside_a_wrong_one(planted: PlantedFact, answer: str) -> None:
    assert not planted.is_told_by(answer)
