"""The whole comparison of the KV caches: Octavo and mlx-lm in one process, on the same loaded model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.bench.kv.figures import KVBench, Prefill, Quality, Row, Step
from engine.bench.kv.kinds import COLD_4, FEW_PAGES, MLX_LM_16, QUALITY_KINDS, SPEED_KINDS, CacheKind
from engine.bench.loading import load_for_bench, package_versions
from engine.bench.prose import require_tokens
from engine.errors import OctavoError

if TYPE_CHECKING:
    from engine.model import Model

WARM_UP_TOKENS = 4

OnStage = Callable[[str, int, int], None]
"""Told what is being measured, in words, how many tokens there are, 0 for none, and how many are done."""


@dataclasses.dataclass(frozen=True)
class KVBenchPlan:
    """What is to be measured.

    Attributes:
        num_tokens: length of the text that is read.
        answer_tokens: length of an answer, at least 2.
        runs: answers of each cache.
    """

    num_tokens: int = 6000
    answer_tokens: int = 32
    runs: int = 5

    @property
    def written_tokens(self) -> int:
        """The most that is written behind the text."""
        return self.runs * (self.answer_tokens + 3)


def bench_kv(path: Path, text: str, plan: KVBenchPlan, on_stage: OnStage) -> KVBench:
    """Measure all caches; with mlx-lm's quantized prefill on a CPU 6,000 tokens take some twenty minutes.

    Args:
        path: a model's folder or file.
        text: what is read.
        plan: how much of it, and how often.
        on_stage: told what is being done.

    Raises:
        OctavoError: the model cannot be loaded, mlx-lm cannot quantize its cache, the text is too short, or
            the context does not hold it.
    """
    model, setup = load_for_bench(path)
    tokens = require_tokens(model.tokenizer, text, plan.num_tokens)
    if plan.num_tokens + plan.written_tokens > model.info.context_tokens:
        raise OctavoError(
            f"{model.info.name} has a context of {model.info.context_tokens:,} tokens; {plan.num_tokens:,} "
            f"to read and {plan.written_tokens:,} to write do not fit it. Read fewer."
        )

    from engine.bench.kv.mlx_lm import require_quantizable

    require_quantizable(model.module, model.info.name)
    prefill, steps = _speed(model, tokens, plan, on_stage)
    quality = _quality(model, tokens, on_stage)
    rows = tuple(
        Row(kind, quality.get(kind), prefill.get(kind), steps.get(kind))
        for kind in dict.fromkeys([*QUALITY_KINDS, *SPEED_KINDS, FEW_PAGES])
    )
    return KVBench(plan.num_tokens, setup, package_versions(), rows)


def _speed(
    model: Model, tokens: Sequence[int], plan: KVBenchPlan, on_stage: OnStage
) -> tuple[dict[CacheKind, Prefill], dict[CacheKind, Step]]:
    from engine.bench.kv.prefill import measure_prefill
    from engine.bench.kv.steps import measure_steps
    from engine.bench.kv.subjects import OctavoSubject, Subject, make_subject

    subjects: dict[CacheKind, Subject] = {}
    prefill: dict[CacheKind, Prefill] = {}
    for kind in SPEED_KINDS:
        for _ in make_subject(model, kind).stream(tokens[:WARM_UP_TOKENS], WARM_UP_TOKENS):
            pass
        subjects[kind] = make_subject(model, kind)
        stage = f"prefill, {kind.side.value} {kind.precision}"
        prefill[kind] = measure_prefill(subjects[kind], tokens, partial(on_stage, stage, len(tokens)))
    cold = subjects[COLD_4]
    if isinstance(cold, OctavoSubject) and cold.can_fork:
        subjects[FEW_PAGES] = cold.with_spec(FEW_PAGES)
    on_stage("decode, by turns", 0, 0)
    return prefill, measure_steps(model, subjects, tokens[-1], plan.answer_tokens, plan.runs)


def _quality(model: Model, tokens: Sequence[int], on_stage: OnStage) -> dict[CacheKind, Quality]:
    from engine.bench.kv.quality import make_reader, measure_quality

    return measure_quality(
        make_reader(model.module, MLX_LM_16),
        {kind: make_reader(model.module, kind) for kind in QUALITY_KINDS},
        tokens,
        partial(on_stage, "quality, all caches side by side", len(tokens)),
    )
