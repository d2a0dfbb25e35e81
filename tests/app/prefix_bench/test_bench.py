from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from app.prefix_bench.bench import PrefixBenchPlan, bench_prefix
from app.prefix_bench.order import Order, Outcome, Phase
from engine.backend import Backend
from engine.bench.child import run_for_last_line
from engine.bench.prefix.figures import PrefixBench, Start
from engine.bench.prose import TEXT
from engine.errors import OctavoError
from tests.engine.folders import write_folder
from tests.engine.small_engine import END_TOKEN

PAGE_TOKENS = 256
PLAN = PrefixBenchPlan(num_tokens=1200, runs=2, answer_tokens=4)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose heads mlx-lm's groups of 64 divide, and whose tokens are bytes."""
    folder = tmp_path_factory.mktemp("model")
    return write_folder(
        folder, bits=None, hidden_size=256, max_position_embeddings=4096, eos_token_id=END_TOKEN
    )


def in_this_process(order: Order) -> Outcome:
    from app.prefix_bench.phases import run_phase

    return run_phase(order)


def in_a_process(order: Order) -> Outcome:
    command = [sys.executable, "-P", "-m", "app", "bench", "prefix-phase", order.to_json()]
    return Outcome.from_json(run_for_last_line(command))


def require_whole(result: PrefixBench, plan: PrefixBenchPlan) -> None:
    """Check what holds for the figures of any model."""
    answers = result.first_tokens()
    assert [len(answers[start]) for start in Start] == [1, 1, 1, plan.runs, plan.runs, plan.runs]
    for start in (Start.NOTHING, Start.NOTHING_YET):
        assert answers[start][0].reused_tokens == 0
    assert 0 < result.ahead.prompt_tokens - result.ahead.reused_tokens <= 40  # the question alone
    assert result.ahead.prompt_tokens == result.cold.prompt_tokens
    kept = result.kept
    for start in (Start.CONVERSATION, Start.LOADED):
        for answer in answers[start]:
            # All but the last written token, which was never read, and what the model writes otherwise.
            assert kept.num_tokens - 40 <= answer.reused_tokens <= kept.num_tokens < answer.prompt_tokens
    for answer in answers[Start.DOCUMENT]:
        assert 0 <= answer.prompt_tokens - answer.reused_tokens <= PAGE_TOKENS + 60
    for answer in (one for several in answers.values() for one in several):
        assert answer.prompt_tokens > plan.num_tokens
        assert 0 < answer.ttft_s < answer.process_s
    assert kept.num_tokens % PAGE_TOKENS == kept.open_tokens
    assert 0 < kept.pages_nbytes < kept.nbytes
    assert 0.9 * kept.pages_nbytes < kept.stored_nbytes < kept.disk_nbytes < 2 * kept.nbytes
    assert len(result.decode.idle_tps) == len(result.decode.writing_tps) == plan.runs
    assert result.decode.seconds > 0  # too few for the writer, which pauses, to write in all of them
    assert [cache.saved.bits for cache in result.prompt_caches] == [16, 4]
    exact, quantized = (cache.saved for cache in result.prompt_caches)
    assert exact.num_tokens == quantized.num_tokens >= result.cold.prompt_tokens
    assert quantized.disk_nbytes < exact.disk_nbytes / 3


def test_what_is_kept_is_found_by_all_that_ask_about_it(path: Path, backend: Backend, tmp_path: Path) -> None:
    stages: list[str] = []
    result = bench_prefix(path, TEXT, PLAN, tmp_path, in_this_process, stages.append)
    require_whole(result, PLAN)
    assert stages[0] == "reading 1,200 tokens with nothing kept"
    assert "restart 2 of 2: a new conversation about the document" in stages
    assert not list(tmp_path.iterdir())


def test_a_process_that_finds_nothing_is_an_error(path: Path, backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    with pytest.raises(OctavoError, match=r"^A process found nothing of what was kept"):
        in_this_process(Order(Phase.DOCUMENT, path, tmp_path, 600))


def test_a_text_that_is_too_short_is_one_sentence(path: Path, backend: Backend, tmp_path: Path) -> None:
    with pytest.raises(OctavoError, match=r"^The text has 9 tokens and 1,200 are to be read"):
        bench_prefix(path, "Too short", PLAN, tmp_path, in_this_process, lambda stage: None)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_starter_answers_behind_what_other_processes_have_kept(
    starter_gguf: Path, tmp_path: Path, octavo_home: Path
) -> None:
    plan = PrefixBenchPlan(num_tokens=600, runs=1, answer_tokens=4)
    result = bench_prefix(starter_gguf, TEXT, plan, tmp_path, in_a_process, lambda stage: None)
    require_whole(result, plan)
    assert json.dumps(result.setup)
    assert result.speedup(Start.CONVERSATION) > 2  # a tenth is read
