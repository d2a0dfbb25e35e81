from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.document_bench.bench import beginning, bench_document, spread
from app.document_bench.facts import FactKind, PlantedFact
from app.document_bench.figures import AskedFact, BenchWay, DocumentBenchPlan
from engine.backend import Backend
from tests.engine.small_engine import write_small_model

WAYS = (BenchWay.TRUNCATED, BenchWay.WHOLE, BenchWay.SEGMENTS, BenchWay.LOOK_UP)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


def count_words(text: str) -> int:
    return len(text.split())


@pytest.mark.slow
def test_each_way_is_asked_for_all_facts_and_what_does_not_fit_is_refused(
    path: Path, backend: Backend
) -> None:
    told: list[tuple[BenchWay, int, int]] = []
    plan = DocumentBenchPlan(num_tokens=9000, num_facts=2, ways=WAYS, max_context=4000)
    result = bench_document(path, plan, lambda *question: told.append(question))
    runs = {run.way: run for run in result.runs}
    assert result.limit_tokens == 4000 and result.num_tokens >= 9000
    assert runs[BenchWay.WHOLE].asked == () and runs[BenchWay.WHOLE].refusal
    for way in (BenchWay.TRUNCATED, BenchWay.SEGMENTS, BenchWay.LOOK_UP):
        assert len(runs[way].asked) == 2 and not runs[way].refusal
        assert runs[way].peak_kv_nbytes > 0 and runs[way].peak_mlx_nbytes > 0
        assert all(one.read_tokens > 0 and one.seconds > 0 for one in runs[way].asked)
        assert [question for question in told if question[0] is way] == [(way, 1, 2), (way, 2, 2)]
    assert runs[BenchWay.SEGMENTS].asked[0].read_tokens >= result.num_tokens  # random weights note something
    assert runs[BenchWay.LOOK_UP].read_tokens < result.num_tokens
    assert runs[BenchWay.LOOK_UP].num_read == 2  # what is looked at does not depend on the weights


@pytest.mark.slow
def test_a_bench_that_goes_on_asks_only_what_has_no_answer(path: Path, backend: Backend) -> None:
    plan = DocumentBenchPlan(9000, 6, (BenchWay.LOOK_UP,), max_context=4000, num_asked=3)
    answered: list[AskedFact] = []
    bench_document(path, plan, lambda *question: None, lambda way, one: answered.append(one))
    again: list[AskedFact] = []
    result = bench_document(
        path,
        plan,
        lambda *question: None,
        lambda way, one: again.append(one),
        lambda way, fact: next((one for one in answered[:2] if one.fact == fact), None),
    )
    assert len(answered) == 3 and [one.fact for one in again] == [answered[2].fact]
    assert result.num_facts == 6 and result.runs[0].asked[:2] == tuple(answered[:2])


def test_facts_that_are_asked_for_are_spread_evenly() -> None:
    facts = [PlantedFact(FactKind.NUMBER, "", str(number), (), 0, 1) for number in range(40)]
    assert [fact.answer for fact in spread(facts, 4)] == ["5", "15", "25", "35"]
    assert spread(facts, None) == spread(facts, 99) == facts


def test_of_a_text_that_is_cut_whole_paragraphs_of_its_beginning_are_left() -> None:
    text = "one two\n\nthree four five\n\nsix"
    assert beginning(text, 5, count_words) == "one two\n\nthree four five"
    assert beginning(text, 4, count_words) == "one two"
    assert beginning(text, 9, count_words) == text


def test_the_command_imports_no_mlx_before_its_backend_is_prepared() -> None:
    code = "import sys, app.cli.bench; sys.exit('mlx.core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
