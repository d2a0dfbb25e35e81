from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from engine.control_group import GroupMemory
from engine.figures import EngineFigures
from engine.memory import MemoryReading, MemorySample, PressureLevel, available_nbytes

MB = 10**6


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> GroupMemory:
    """A control group of this process that may take 100 MB and has taken 60."""
    group = GroupMemory(100 * MB, 60 * MB, Path("/"))
    monkeypatch.setattr("engine.memory.group_memory", lambda most_nbytes: group)
    return group


def test_a_container_has_what_its_limit_leaves(group: GroupMemory) -> None:
    assert available_nbytes() == 40 * MB


def test_without_a_limit_the_whole_machine_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.memory.group_memory", lambda most_nbytes: None)
    assert available_nbytes() == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_a_sample_tells_of_the_container_where_that_has_less(group: GroupMemory) -> None:
    reading = MemoryReading(1.0, total_nbytes=8000 * MB, available_nbytes=5000 * MB, group=group)
    sample = MemorySample.of(reading, EngineFigures(), PressureLevel.NORMAL, "fine")
    assert (sample.total_nbytes, sample.available_nbytes) == (100 * MB, 40 * MB)
