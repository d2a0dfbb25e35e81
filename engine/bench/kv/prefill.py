"""Speed and memory of reading a text."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

import mlx.core as mx

from engine.bench.kv.figures import Prefill
from engine.bench.kv.subjects import OnRead, Subject


def measure_prefill(subject: Subject, tokens: Sequence[int], on_read: OnRead) -> Prefill:
    """Have an empty cache read all tokens and write one, in its own side's chunks."""
    gc.collect()  # what a cache of before still holds would be missing from the peak when it goes meanwhile
    mx.clear_cache()
    before_nbytes = mx.get_active_memory()
    mx.reset_peak_memory()
    started_s = time.perf_counter()
    answer = subject.stream(tokens, 1, on_read)
    next(answer)
    elapsed_s = time.perf_counter() - started_s
    peak_nbytes = mx.get_peak_memory() - before_nbytes
    for _ in answer:
        pass
    return Prefill(
        tps=len(tokens) / elapsed_s,
        peak_nbytes=peak_nbytes,
        sealed_nbytes_per_token=subject.sealed_nbytes_per_token,
        nbytes=subject.nbytes,
    )
