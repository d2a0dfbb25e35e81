from __future__ import annotations

from pathlib import Path

import pytest

from app.stop_bench import bench_stop


@pytest.mark.slow
def test_every_kind_of_work_is_stopped_and_timed(starter_gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.stop_bench.MAX_DELAY_S", 0.01)
    timings = list(bench_stop(starter_gguf, runs=1, prompt_tokens=200))
    assert [timing.work.split()[0] for timing in timings] == [
        "reading",
        "loading",
        "reading",
        "reading",
        "writing",
    ]
    for timing in timings:
        assert len(timing.stopped_s) == 1, timing.work
        assert 0 <= timing.stopped_s[0] < 30
