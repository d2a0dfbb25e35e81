from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from engine.bench.kv.bench import KVBenchPlan, bench_kv
from engine.bench.kv.kinds import COLD_4, FEW_PAGES, MLX_LM_4, MLX_LM_16, CacheKind
from engine.bench.kv.prefill import measure_prefill
from engine.bench.kv.steps import measure_steps
from engine.bench.kv.subjects import OctavoSubject, Subject, make_subject
from engine.bench.prose import TEXT, require_tokens
from engine.errors import OctavoError
from engine.kv.cache import SequenceCache
from engine.model import Model

pytestmark = pytest.mark.slow

WITHOUT_MATPLOTLIB = """
import sys
import app.cli.bench, engine.bench.kv.bench
print("matplotlib" in sys.modules, "mlx" in sys.modules)
"""
NUM_TOKENS = 260


@pytest.fixture(scope="module")
def subjects(starter: Model) -> dict[CacheKind, Subject]:
    tokens = require_tokens(starter.tokenizer, TEXT, NUM_TOKENS)
    read: dict[CacheKind, Subject] = {}
    for kind in (MLX_LM_16, MLX_LM_4, COLD_4):
        read[kind] = make_subject(starter, kind)
        done: list[int] = []
        prefill = measure_prefill(read[kind], tokens, done.append)
        assert done[-1] >= NUM_TOKENS - 1
        assert prefill.tps > 0
        assert prefill.peak_nbytes >= prefill.nbytes
        # 30 layers of 3 heads of 64 keys and values; scales and biases of float32 in groups of 64.
        numbers = 30 * 3 * 64 * 2
        nbytes = numbers * 4 if kind == MLX_LM_16 else numbers / 2 + numbers / 64 * 8
        assert prefill.sealed_nbytes_per_token == nbytes
    return read


def test_the_parts_of_a_step_are_measured_on_each_cache(
    starter: Model, subjects: dict[CacheKind, Subject]
) -> None:
    cold = subjects[COLD_4]
    assert isinstance(cold, OctavoSubject)
    measured = subjects | {FEW_PAGES: cold.with_spec(FEW_PAGES)}
    home = sys.modules[type(starter.module).__module__]
    attention = home.scaled_dot_product_attention
    before = {kind: subject.layers[0].offset for kind, subject in measured.items()}
    steps = measure_steps(starter, measured, 28, answer_tokens=3, runs=2)
    for kind, step in steps.items():
        parts = (step.total_s, step.attention_s, step.model_s, step.sampling_s, step.building_s)
        assert all(math.isfinite(part) and part > 0 for part in parts), kind
        # A token read, two or three written, and one taken to hear the attention calls, twice.
        assert before[kind] + 8 <= measured[kind].layers[0].offset <= before[kind] + 10
    assert home.scaled_dot_product_attention is attention
    offsets = {measured[kind].layers[0].offset for kind in (COLD_4, FEW_PAGES)}
    assert len(offsets) == 1


def test_a_cache_still_knows_what_it_holds_after_its_steps_were_measured(starter: Model) -> None:
    cache = SequenceCache(starter.module, COLD_4.spec)
    subject = OctavoSubject(starter, cache)
    for _ in subject.stream(require_tokens(starter.tokenizer, TEXT, 5), 2):
        pass
    measure_steps(starter, {COLD_4: subject}, 28, answer_tokens=2, runs=1)
    assert cache.num_tokens == len(cache.tokens) == cache.layers[0].size()
    assert cache.tokens[-1] == 28


def test_the_whole_bench_has_a_row_for_each_cache(
    starter_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.bench.kv.bench.QUALITY_KINDS", (MLX_LM_16, MLX_LM_4))
    monkeypatch.setattr("engine.bench.kv.bench.SPEED_KINDS", (MLX_LM_4, COLD_4))
    stages: list[str] = []
    plan = KVBenchPlan(num_tokens=80, answer_tokens=2, runs=1)
    result = bench_kv(starter_gguf, TEXT, plan, lambda stage, total, done: stages.append(stage))
    kinds = [row.kind for row in result.rows]
    assert kinds == [MLX_LM_16, MLX_LM_4, COLD_4, FEW_PAGES]
    assert [row.kind for row in result.rows if row.quality] == [MLX_LM_16, MLX_LM_4]
    assert [row.kind for row in result.rows if row.prefill] == [MLX_LM_4, COLD_4]
    assert [row.kind for row in result.rows if row.step] == [MLX_LM_4, COLD_4, FEW_PAGES]
    assert [stage.partition(",")[0] for stage in dict.fromkeys(stages)] == [
        "prefill",
        "prefill",
        "decode",
        "quality",
    ]


def test_a_text_beyond_the_models_context_is_refused(starter_gguf: Path) -> None:
    plan = KVBenchPlan(num_tokens=8100, answer_tokens=32, runs=5)
    with pytest.raises(OctavoError, match=r"has a context of 8,192 tokens; 8,100 to read and 175 to write"):
        bench_kv(starter_gguf, TEXT + TEXT, plan, lambda *stage: None)


def test_nothing_but_the_picture_needs_matplotlib() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
