from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from engine.memory import available_nbytes

MIB = 1 << 20


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a control group that may take 100 MiB and has taken 60."""
    monkeypatch.setattr("engine.memory._CGROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{100 * MIB}\n")
    (tmp_path / "memory.current").write_text(f"{60 * MIB}\n")
    return tmp_path


def test_a_container_has_what_its_limit_leaves(group: Path) -> None:
    assert available_nbytes() == 40 * MIB
    (group / "memory.current").write_text(f"{130 * MIB}\n")
    assert available_nbytes() == 0


def test_copies_of_files_that_nobody_uses_are_free(group: Path) -> None:
    (group / "memory.stat").write_text(f"anon 1\ninactive_file {25 * MIB}\nactive_file 7\n")
    assert available_nbytes() == 65 * MIB


def test_without_a_limit_the_whole_machine_counts(group: Path) -> None:
    (group / "memory.max").write_text("max\n")
    assert available_nbytes() == pytest.approx(psutil.virtual_memory().available, rel=0.2)
