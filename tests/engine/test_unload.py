from __future__ import annotations

import gc
from pathlib import Path

import mlx.core as mx

from engine.backend import Backend
from engine.cancel import CancelToken
from tests.engine.small_engine import asked, conversation, small_engine, write_small_model


def test_a_model_that_has_answered_gives_its_weights_back(tmp_path: Path, backend: Backend) -> None:
    path = write_small_model(tmp_path)
    gc.collect()  # what other tests have left would be given back in between
    before = mx.get_active_memory()
    engine = small_engine(path, backend)
    list(engine.generate(asked(conversation(1)), CancelToken()))
    weights = mx.get_active_memory() - before
    engine.unload()
    assert weights > 100_000
    assert mx.get_active_memory() - before < 0.05 * weights
    assert mx.get_cache_memory() == 0
