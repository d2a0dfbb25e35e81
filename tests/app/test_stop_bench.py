from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.settings import DEFAULT_KV
from app.stop_bench import bench_stop
from engine.kv.precision import KVSpec

if TYPE_CHECKING:
    import mlx.nn as nn


@pytest.mark.slow
def test_every_kind_of_work_is_stopped_and_timed(starter_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.kv.cache import SequenceCache

    specs = set()

    class Noted(SequenceCache):
        def __init__(self, module: nn.Module, spec: KVSpec) -> None:
            specs.add(spec)
            super().__init__(module, spec)

    monkeypatch.setattr("engine.reply_context.SequenceCache", Noted)
    monkeypatch.setattr("app.stop_bench.MAX_DELAY_S", 0.01)
    timings = list(bench_stop(starter_gguf, runs=1, prompt_tokens=200))
    assert [timing.work.split()[0] for timing in timings] == [
        "reading",
        "loading",
        "reading",
        "reading",
        "writing",
    ]
    assert specs == {DEFAULT_KV}
    for timing in timings:
        assert len(timing.stopped_s) == 1, timing.work
        assert 0 <= timing.stopped_s[0] < 30
