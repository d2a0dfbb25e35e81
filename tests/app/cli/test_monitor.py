from __future__ import annotations

import contextlib
import csv
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from app.cli.monitor import ASKS, monitor
from app.command_line import app_command
from engine.errors import OctavoError
from engine.guard import GuardStep
from engine.memory import MemoryReading
from tests.engine.memory_samples import MB, reading

pytestmark = pytest.mark.usefixtures("octavo_home")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(monitor, list(arguments))


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def test_a_while_is_watched_and_written(tmp_path: Path) -> None:
    file = tmp_path / "memory.csv"
    result = run("--interval", "0.1", "--duration", "0.35", "--csv", str(file))
    assert result.exit_code == 0
    written = rows(file)
    assert len(written) >= 2
    assert all(int(row["available_nbytes"]) <= int(row["total_nbytes"]) for row in written)
    assert {row["process_nbytes"] for row in written} == {""}
    assert f"{len(written)} samples" in result.output


def test_a_command_is_run_and_watched_in_this_process(tmp_path: Path) -> None:
    file = tmp_path / "memory.csv"
    result = run("--interval", "0.1", "--csv", str(file), "--", "models", "list")
    assert result.exit_code == 0
    assert "No model is installed yet" in result.output
    first = rows(file)[0]
    assert int(first["process_nbytes"]) > 10 * MB
    assert first["phase"] == "idle"


def test_a_command_that_fails_ends_as_it_would_alone_and_leaves_the_samples(tmp_path: Path) -> None:
    file = tmp_path / "memory.csv"
    result = run("--csv", str(file), "--", "models", "remove", "no such model")
    assert isinstance(result.exception, OctavoError)
    assert rows(file)


def test_the_windows_process_is_watched_where_it_is_open(tmp_path: Path, octavo_home: Path) -> None:
    from PySide6.QtCore import QLockFile

    octavo_home.mkdir()
    lock = QLockFile(str(octavo_home / "octavo.lock"))
    assert lock.tryLock(0)
    file = tmp_path / "memory.csv"
    result = run("--interval", "0.1", "--duration", "0.15", "--csv", str(file))
    lock.unlock()
    assert "Octavo took up to" in result.output
    assert int(rows(file)[0]["process_nbytes"]) > 10 * MB
    assert rows(file)[0]["mlx_active_nbytes"] == ""


def test_the_limit_that_the_windows_user_has_set_is_watched(octavo_home: Path) -> None:
    from PySide6.QtCore import QLockFile

    octavo_home.mkdir()
    (octavo_home / "settings.toml").write_text("[memory]\nmost_nbytes = 1_000_000\n")
    lock = QLockFile(str(octavo_home / "octavo.lock"))
    assert lock.tryLock(0)
    opened = run("--interval", "0.1", "--duration", "0.5")
    lock.unlock()
    assert f"The guard asks {ASKS[GuardStep.CLEAR_CACHE]}: Octavo takes " in opened.output
    assert "1.0 MB that it may" in opened.output


def test_what_the_guard_asks_for_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class ShortMemory:
        def __init__(self, watched: object) -> None:
            self._second = 0

        def __call__(self) -> MemoryReading:
            self._second += 5
            return reading(time_s=float(self._second), available_nbytes=300 * MB)

    monkeypatch.setattr("app.cli.monitor.MemorySensor", ShortMemory)
    output = run("--interval", "0.1", "--duration", "0.4").output
    assert f"The guard asks {ASKS[GuardStep.CLEAR_CACHE]}: only 300 MB of the 16.0 GB" in output
    assert f"The guard asks {ASKS[GuardStep.LOWER_TIERS]}" in output


def test_every_step_has_its_words() -> None:
    assert set(ASKS) == set(GuardStep) - {GuardStep.NONE}


def test_a_guard_that_comes_down_asks_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    class PassingShortage:
        def __init__(self, watched: object) -> None:
            self._count = 0

        def __call__(self) -> MemoryReading:
            self._count += 1
            free = 300 * MB if self._count <= 2 else 9_000 * MB
            return reading(time_s=self._count * 20.0, available_nbytes=free)

    monkeypatch.setattr("app.cli.monitor.MemorySensor", PassingShortage)
    output = run("--interval", "0.1", "--duration", "0.8").output
    assert f"The guard no longer asks {ASKS[GuardStep.CLEAR_CACHE]}: 9.0 of the 16.0 GB" in output


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_is_full_is_told_at_once_and_ends_in_a_failure() -> None:
    result = run("--interval", "0.1", "--duration", "0.35", "--csv", "/dev/full")
    assert "/dev/full cannot be written: No space left on device." in str(result.exception or result.output)
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--duration", "5", "--", "models", "list"], "without a command"),
        (["--", "monitor"], "another"),
        (["--", "nonsense"], "nonsense"),
        (["--csv", "/no/such/folder/memory.csv"], "no folder"),
        (["--interval", "nan"], "no number"),
        (["--duration", "nan"], "no number"),
        (["--duration", "1e30"], "not in the range"),
    ],
)
def test_what_cannot_be_watched_is_refused(arguments: list[str], told: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.output


@contextlib.contextmanager
def watching(file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A monitor that waits, as its first sample is on standard error, a terminal of its own."""
    terminal, other_end = os.openpty()
    command = [*app_command(), "monitor", "--interval", "0.1", "--csv", str(file)]
    with subprocess.Popen(command, stderr=other_end) as child:
        os.close(other_end)
        shown = b""
        while b"memory are free" not in shown:
            shown += os.read(terminal, 1000)
        yield child
    os.close(terminal)


@pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_the_file_whole(tmp_path: Path, number: signal.Signals) -> None:
    file = tmp_path / "memory.csv"
    with watching(file) as child:
        child.send_signal(number)
        assert child.wait(30) == 0
    written = rows(file)
    assert written
    assert all(None not in row.values() and row["level"] for row in written)


def test_what_was_seen_before_a_kill_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "memory.csv"
    with watching(file) as child:
        child.kill()
    assert rows(file)[0]["level"] == "normal"
