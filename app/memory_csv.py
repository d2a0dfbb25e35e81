"""Samples of memory as a CSV file, for `octavo monitor` and the window's export."""

from __future__ import annotations

import contextlib
import csv
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from app.csv_file import csv_content
from app.output_files import error_reason, write_files
from engine.errors import OctavoError
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


def memory_csv(samples: Sequence[MemorySample]) -> bytes:
    """Return a line for each sample, in order, below one with the names of the columns.

    `time` is local time, `seconds` counts from the first sample. What is not known is empty.
    """
    begun_s = samples[0].time_s if samples else 0.0
    return csv_content([_fields(sample, begun_s, True) for sample in samples], COLUMNS)


def write_memory_csv(file: Path, samples: Sequence[MemorySample]) -> None:
    """Write such a file whole, or leave what was there.

    Raises:
        OctavoError: it cannot be written; the message says why.
    """
    write_files({file: lambda: memory_csv(samples)})


class MemoryCsvLog:
    """Such a file while the samples come in: what was seen is there whatever ends the program.

    What MLX and the engine say is left empty where the samples are of another process than this one.

    Raises:
        OctavoError: the file cannot be written; the message says why.
    """

    def __init__(self, file: Path, *, is_own_process: bool) -> None:
        self._file = file
        self._is_own_process = is_own_process
        self._begun_s: float | None = None
        with self._told():
            self._opened = file.open("w", encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._opened, COLUMNS)
        try:
            with self._told():
                self._writer.writeheader()
                self._opened.flush()
        except OctavoError:
            self.close()
            raise

    def add(self, sample: MemorySample) -> None:
        """Write one more sample."""
        if self._begun_s is None:
            self._begun_s = sample.time_s
        with self._told():
            self._writer.writerow(_fields(sample, self._begun_s, self._is_own_process))
            self._opened.flush()

    def close(self) -> None:
        """End the file; what could not be written by then was told when it was added."""
        with contextlib.suppress(OSError):
            self._opened.close()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OctavoError(f"{self._file} cannot be written: {error_reason(error)}.") from error


def _fields(sample: MemorySample, begun_s: float, is_own_process: bool) -> dict[str, object]:
    return _system_fields(sample, begun_s) | (_engine_fields(sample) if is_own_process else {})


def _system_fields(sample: MemorySample, begun_s: float) -> dict[str, object]:
    when = datetime.fromtimestamp(sample.time_s + time.time() - time.monotonic())
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
