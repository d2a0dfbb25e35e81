from __future__ import annotations

import csv
import dataclasses
import errno
import io
import os
import time
from datetime import datetime
from pathlib import Path

import pytest

from app.memory_csv import COLUMNS, MemoryCsvLog, memory_csv, write_memory_csv
from engine.errors import OctavoError
from engine.figures import EngineFigures, KVBytes, Phase
from engine.memory import MemorySample, PressureLevel
from tests.engine.memory_samples import samples

ENGINE = EngineFigures(Phase.DECODE, 11, KVBytes(hot=21, warm=22, cold=23, open=24, idle=25), 31, 32)
FULL = MemorySample(
    time_s=0.0,
    total_nbytes=1,
    available_nbytes=2,
    swap_nbytes=3,
    swap_rate=4.4,
    stalled=0.25,
    compressed_nbytes=6,
    process_nbytes=7,
    active_nbytes=8,
    cache_nbytes=9,
    peak_nbytes=10,
    engine=ENGINE,
    level=PressureLevel.WARNING,
    reason="short, “very”",
)


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_every_figure_of_a_sample_has_its_column() -> None:
    (row,) = rows(memory_csv([FULL]))
    assert list(row) == list(COLUMNS)
    system = ["0.0", "1", "2", "3", "4", "0.25", "6", "warning", "short, “very”", "7"]
    engine = ["8", "9", "10", "decode", "11", "21", "22", "23", "24", "25", "31", "32"]
    assert list(row.values())[1:] == [*system, *engine]


def test_the_time_is_that_of_the_clock_on_the_wall() -> None:
    before = datetime.now()
    (row,) = rows(memory_csv([dataclasses.replace(FULL, time_s=time.monotonic())]))
    assert abs((datetime.fromisoformat(row["time"]) - before).total_seconds()) < 1


def test_seconds_count_from_the_first_sample() -> None:
    taken = [dataclasses.replace(FULL, time_s=100.0 + second) for second in (0, 1, 2.5)]
    assert [row["seconds"] for row in rows(memory_csv(taken))] == ["0.0", "1.0", "2.5"]


def test_what_is_not_known_is_empty() -> None:
    unknown = dataclasses.replace(FULL, stalled=None, compressed_nbytes=None)
    (row,) = rows(memory_csv([unknown]))
    assert row["stalled_share"] == row["compressed_nbytes"] == ""


def test_of_another_process_neither_mlx_nor_the_engine_is_known(tmp_path: Path) -> None:
    log = MemoryCsvLog(tmp_path / "memory.csv", is_own_process=False)
    log.add(FULL)
    (row,) = rows((tmp_path / "memory.csv").read_bytes())
    log.close()
    assert row["process_nbytes"] == "7"
    assert {value for name, value in row.items() if name.startswith(("mlx", "kv", "planned"))} == {""}
    assert row["phase"] == row["weights_nbytes"] == ""


def test_without_samples_there_are_the_names_of_the_columns() -> None:
    assert memory_csv([]).decode().strip() == ",".join(COLUMNS)


def test_the_file_has_all_samples_in_order(tmp_path: Path) -> None:
    file = tmp_path / "memory.csv"
    write_memory_csv(file, samples("nwcn"))
    levels = [row["level"] for row in rows(file.read_bytes())]
    assert levels == ["normal", "warning", "critical", "normal"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OctavoError, match="cannot be written"):
        write_memory_csv(tmp_path / "folder.csv", [FULL])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")
def test_a_full_disk_is_told() -> None:
    with pytest.raises(OctavoError, match=os.strerror(errno.ENOSPC)):
        write_memory_csv(Path("/dev/full"), [FULL])
