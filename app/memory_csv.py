"""Samples of memory as a CSV file, for `octavo monitor` and the window's export."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from app.csv_file import csv_content
from app.output_files import write_files
from engine.memory import MemorySample

COLUMNS = (
    "time",
    "seconds",
    "total_nbytes",
    "available_nbytes",
    "swap_nbytes",
    "swap_nbytes_per_s",
    "stalled_share",
    "compressed_nbytes",
    "level",
    "reason",
    "process_nbytes",
    "mlx_active_nbytes",
    "mlx_cache_nbytes",
    "mlx_peak_nbytes",
    "phase",
    "weights_nbytes",
    "kv_hot_nbytes",
    "kv_warm_nbytes",
    "kv_cold_nbytes",
    "kv_open_nbytes",
    "kv_idle_nbytes",
    "planned_weights_nbytes",
    "planned_kv_nbytes",
)


def memory_csv(samples: Sequence[MemorySample], *, is_own_process: bool = True) -> bytes:
    """Return a line for each sample, in order, below one with the names of the columns.

    `time` is local time, `seconds` counts from the first sample. What is not known is empty: what MLX and the
    engine say, where the samples are of another process than this one.
    """
    offset_s = time.time() - time.monotonic()
    begun_s = samples[0].time_s if samples else 0.0
    rows = [
        _system_fields(sample, offset_s, begun_s) | (_engine_fields(sample) if is_own_process else {})
        for sample in samples
    ]
    return csv_content(rows, COLUMNS)


def write_memory_csv(file: Path, samples: Sequence[MemorySample], *, is_own_process: bool = True) -> None:
    """Write such a file whole, or leave what was there.

    Raises:
        OctavoError: it cannot be written; the message says why.
    """
    write_files({file: lambda: memory_csv(samples, is_own_process=is_own_process)})


def _system_fields(sample: MemorySample, offset_s: float, begun_s: float) -> dict[str, object]:
    when = datetime.fromtimestamp(sample.time_s + offset_s)
    return {
        "time": when.isoformat(timespec="milliseconds"),
        "seconds": round(sample.time_s - begun_s, 3),
        "total_nbytes": sample.total_nbytes,
        "available_nbytes": sample.available_nbytes,
        "swap_nbytes": sample.swap_nbytes,
        "swap_nbytes_per_s": round(sample.swap_rate),
        "stalled_share": sample.stalled,
        "compressed_nbytes": sample.compressed_nbytes,
        "level": sample.level.name.lower(),
        "reason": sample.reason,
        "process_nbytes": sample.process_nbytes or None,
    }


def _engine_fields(sample: MemorySample) -> dict[str, object]:
    engine, kv = sample.engine, sample.engine.kv
    return {
        "mlx_active_nbytes": sample.active_nbytes,
        "mlx_cache_nbytes": sample.cache_nbytes,
        "mlx_peak_nbytes": sample.peak_nbytes,
        "phase": engine.phase.value,
        "weights_nbytes": engine.weights_nbytes,
        "kv_hot_nbytes": kv.hot,
        "kv_warm_nbytes": kv.warm,
        "kv_cold_nbytes": kv.cold,
        "kv_open_nbytes": kv.open,
        "kv_idle_nbytes": kv.idle,
        "planned_weights_nbytes": engine.planned_weights_nbytes,
        "planned_kv_nbytes": engine.planned_kv_nbytes,
    }
