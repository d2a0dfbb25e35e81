from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.bench import bench
from app.cli.document_bench_report import report
from app.document_bench.answers import AnswerFile
from app.document_bench.facts import FactKind, PlantedFact
from app.document_bench.figures import AskedFact, BenchWay, DocumentBench, DocumentBenchPlan, WayRun
from app.models.starter import STARTER_FILE
from engine.errors import OctavoError
from engine.memory import PressureLevel
from tests.engine.memory_samples import sample

FACT = PlantedFact(FactKind.NUMBER, "How many?", "4,350", ("1,200",), 10, 20)
NAME = PlantedFact(FactKind.NAME, "Who?", "Miriam Okafor", (), 30, 40)


def asked(fact: PlantedFact, seconds: float, *, is_found: bool = True) -> AskedFact:
    return AskedFact(fact, "4350 [1]", is_found, True, False, seconds, 1000, 20, 5_000_000, 6_000_000)


RESULT = DocumentBench(
    num_tokens=60_012,
    num_facts=40,
    limit_tokens=8192,
    kv="8",
    setup="CPU",
    versions="mlx 0",
    runs=(
        WayRun(BenchWay.WHOLE, (), (sample(PressureLevel.NORMAL),), "The document does not fit."),
        WayRun(
            BenchWay.LOOK_UP,
            (asked(FACT, 9.0), asked(NAME, 2.0, is_found=False), asked(FACT, 4.0)),
            (sample(PressureLevel.NORMAL, 1.0), sample(PressureLevel.NORMAL, 2.0)),
        ),
    ),
)


def test_each_way_has_what_it_found_and_took_and_refusals_are_told() -> None:
    lines = report(RESULT).splitlines()
    row = next(line for line in lines if line.startswith("look-up"))
    assert row.split()[:7] == ["look-up", "2/3", "3/3", "0/3", "9.0", "3.0", "3,000"]
    kinds = [line for line in lines if line.startswith("look-up")][1]
    assert kinds.split() == ["look-up", "2/2", "0/1", "0/0", "0/0"]
    assert "whole: The document does not fit." in lines
    assert "60,012 tokens with 40 facts, 3 of them asked for; a context of 8,192" in lines[0]
    assert "5.0 MB" in row and "6.0 MB" in row


@pytest.fixture
def folder(octavo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model installed."""
    models = octavo_home / "models"
    models.mkdir(parents=True)
    (models / STARTER_FILE).write_bytes(b"no weights")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_bench_is_asked_for_ways_facts_and_tokens_and_writes_its_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[DocumentBenchPlan] = []

    def run_of_three(model: Path, plan: DocumentBenchPlan, answers: AnswerFile) -> DocumentBench:
        plans.append(plan)
        for one in RESULT.runs[1].asked:
            answers.add(BenchWay.LOOK_UP, one)
        return RESULT

    monkeypatch.setattr("app.cli.bench_document._run", run_of_three)
    run = CliRunner().invoke(
        bench, ["document", "--ways", "look-up, segments", "--facts", "3", "--tokens", "5000"]
    )
    assert run.exit_code == 0 and "look-up" in run.stdout
    CliRunner().invoke(bench, ["document", "--ask", "8"])
    assert plans == [
        DocumentBenchPlan(5000, 3, (BenchWay.LOOK_UP, BenchWay.SEGMENTS)),
        DocumentBenchPlan(60_000, 40, tuple(BenchWay), num_asked=8),
    ]
    with (folder / "octavo-document.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 3
    with (folder / "octavo-document-memory.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 3
    assert (folder / "octavo-document.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["--ways", "by heart"], ["--csv", "a.csv", "--picture", "./a.csv"]])
def test_unknown_ways_and_files_of_the_same_name_are_refused(folder: Path, options: list[str]) -> None:
    assert CliRunner().invoke(bench, ["document", *options]).exit_code == 2


def test_a_bench_in_which_nothing_could_be_asked_is_told_and_written_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = DocumentBench(60_012, 40, 8192, "8", "CPU", "mlx 0", RESULT.runs[:1])
    monkeypatch.setattr("app.cli.bench_document._run", lambda *_: refused)
    run = CliRunner().invoke(bench, ["document", "--ways", "whole"])
    assert "does not fit" in run.stdout and not isinstance(run.exception, OctavoError)
    assert (folder / "octavo-document.csv").read_bytes().startswith(b"run,way,kind,")
