from __future__ import annotations

from pathlib import Path

import pytest

from app.trim_bench import TrimBenchPlan, bench_trim
from engine.backend import Backend
from engine.bench.prose import TEXT, all_texts
from engine.bench.trim.figures import TrimBench
from engine.errors import OctavoError
from tests.engine.small_engine import write_small_model

PLAN = TrimBenchPlan(num_tokens=2400, continuation_tokens=40, num_turns=4, long_run_tokens=1200)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


def require_whole(result: TrimBench, plan: TrimBenchPlan) -> None:
    """Check what holds for the figures of any model."""
    for text in result.texts:
        assert plan.num_tokens <= text.held_tokens < 1.5 * plan.num_tokens  # a turn beyond, with its answer
        assert 0 < text.summary_tokens <= 0.15 * text.released_tokens
        assert text.trimmed_tokens <= 0.6 * plan.num_tokens
        assert text.summary_tokens < text.read_tokens < text.trimmed_tokens / 2
        for seconds in (text.summary_s, text.ready_s, text.mlx_lm_s, text.read_again_s):
            assert seconds > 0
    run = result.long_run
    assert len(run.turns) == plan.num_turns == run.num_answered
    assert run.trims
    assert all(turn.prompt_tokens + turn.written_tokens <= plan.long_run_tokens for turn in run.turns)


def test_a_conversation_about_each_text_is_trimmed_once_and_another_goes_on(
    path: Path, backend: Backend
) -> None:
    stages: list[str] = []
    texts = {"one": TEXT[:9000], "two": TEXT[9000:18000]}
    result = bench_trim(path, texts, PLAN, stages.append)
    require_whole(result, PLAN)
    assert [text.title for text in result.texts] == ["one", "two"]
    assert [text.is_extract for text in result.texts] == [True, True]  # random weights write no summary
    assert all(abs(text.perplexity.excess) < 0.5 for text in result.texts)
    assert stages.index("one: going over the limit") < stages.index("two: going over the limit")
    assert stages[-1] == "turn 4 of 4 beyond a limit of 1,200 tokens"


def test_a_text_that_is_too_short_is_named(path: Path, backend: Backend) -> None:
    with pytest.raises(OctavoError, match="The text short is too short for this"):
        bench_trim(path, {"short": TEXT[:1500]}, PLAN, lambda stage: None)


@pytest.mark.slow
def test_the_starter_goes_on_behind_a_trim_as_if_all_had_been_read_again(
    starter_gguf: Path, backend: Backend
) -> None:
    texts = {"constitution": all_texts()["constitution"]}
    plan = TrimBenchPlan(num_tokens=1200, continuation_tokens=120, num_turns=2, long_run_tokens=700)
    result = bench_trim(starter_gguf, texts, plan, lambda stage: None)
    require_whole(result, plan)
    perplexity = result.texts[0].perplexity
    assert abs(perplexity.excess) < 0.2  # of a wrong position or mask it is many times as much
    assert perplexity.read_again < 20
