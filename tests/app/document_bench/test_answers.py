"""The file from which a bench goes on that was stopped."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from app.document_bench.answers import AnswerFile
from app.document_bench.facts import FactKind, PlantedFact
from app.document_bench.figures import AskedFact, BenchWay
from engine.errors import OctavoError

FACT = PlantedFact(FactKind.NUMBER, "How many?", "4,350", ("1,200",), 10, 20)
ASKED = AskedFact(FACT, "There are 4350,\nit says. [1]", True, True, False, 2.5, 1000, 20, 5_000, 6_000)


def test_what_was_answered_before_a_stop_is_known_when_the_bench_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    AnswerFile(file, "Starter, 8", goes_on=False).add(BenchWay.LOOK_UP, ASKED)
    again = AnswerFile(file, "Starter, 8", goes_on=True)
    assert again.earlier(BenchWay.LOOK_UP, FACT) == ASKED
    assert again.earlier(BenchWay.SEGMENTS, FACT) is None
    assert again.earlier(BenchWay.LOOK_UP, dataclasses.replace(FACT, answer="4,351")) is None
    again.add(BenchWay.SEGMENTS, ASKED)
    third = AnswerFile(file, "Starter, 8", goes_on=True)
    assert third.earlier(BenchWay.LOOK_UP, FACT) == third.earlier(BenchWay.SEGMENTS, FACT) == ASKED


def test_without_going_on_the_file_is_begun_anew(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    AnswerFile(file, "Starter, 8", goes_on=False).add(BenchWay.LOOK_UP, ASKED)
    assert AnswerFile(file, "Starter, 9", goes_on=False).earlier(BenchWay.LOOK_UP, FACT) is None
    AnswerFile(file, "Starter, 9", goes_on=False).write()
    assert file.read_text().splitlines()[1:] == []


@pytest.mark.parametrize("content", ["a,b\n1,2\n", None])
def test_answers_of_another_run_are_refused_and_stay(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "answers.csv"
    if content is None:
        AnswerFile(file, "Starter, 8", goes_on=False).add(BenchWay.LOOK_UP, ASKED)
    else:
        file.write_text(content)
    before = file.read_bytes()
    with pytest.raises(OctavoError, match="another run"):
        AnswerFile(file, "Starter, 9", goes_on=True)
    assert file.read_bytes() == before
