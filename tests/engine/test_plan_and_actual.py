"""The plan of the starter next to what MLX really holds."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest

from engine.backend import Backend
from engine.budget import LoadPlan, kv_nbytes, plan_load
from engine.cancel import CancelToken
from engine.inspection import inspect_model
from engine.kv.cache import SequenceCache
from engine.kv.precision import KVSpec
from engine.loader import load_model
from engine.model import Model

MEMORY_NBYTES = 8 << 30
FIRST_TOKENS = 9 * 256 - 1
"""Just before a page is full: the moment of the most bytes, which is what is planned."""


@pytest.mark.slow
def test_weights_and_cache_of_the_starter_take_what_was_planned(starter_gguf: Path, backend: Backend) -> None:
    info = inspect_model(starter_gguf)
    before = mx.get_active_memory()
    plan = plan_load(info, backend, KVSpec.parse("16"), MEMORY_NBYTES)
    model = _loaded(starter_gguf, backend, plan)
    cache = SequenceCache(model.module, KVSpec.parse("16"))
    cache.read(_tokens(FIRST_TOKENS))
    for text in ("16", "precise", "balanced"):
        kv = KVSpec.parse(text)
        cache.apply(kv)
        cache.read(_tokens(256))  # so that pages pass through the tiers as in a text that grows
        mx.clear_cache()
        planned = kv_nbytes(info, backend, kv, cache.num_tokens)
        assert cache.usage().nbytes == pytest.approx(planned, rel=0.05)
        active = mx.get_active_memory() - before
        assert active == pytest.approx(plan.weights_nbytes + planned, rel=0.05)
        room = plan.weights_nbytes + plan.reserve_nbytes + planned
        told = plan_load(info, backend, kv, room, plan.dequantize)
        assert cache.num_tokens <= told.fitting_tokens <= cache.num_tokens + 256


def _tokens(count: int) -> list[int]:
    return [100 + position * 37 % 40_000 for position in range(count)]


def _loaded(path: Path, backend: Backend, plan: LoadPlan) -> Model:
    return load_model(
        path, backend, dequantize=plan.dequantize, cancel=CancelToken(), on_progress=lambda progress: None
    )
