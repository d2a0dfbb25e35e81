from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.paths import AppPaths
from app.running_window import window_process


@pytest.fixture
def paths(octavo_home: Path) -> AppPaths:
    octavo_home.mkdir()
    return AppPaths(octavo_home)


def test_without_a_window_there_is_none(paths: AppPaths) -> None:
    assert window_process(paths) is None


def test_the_process_that_took_the_lock_is_the_windows(paths: AppPaths) -> None:
    from PySide6.QtCore import QLockFile

    lock = QLockFile(str(paths.window_lock))
    assert lock.tryLock(0)
    assert window_process(paths) == os.getpid()
    lock.unlock()
    assert window_process(paths) is None


def test_a_lock_whose_process_has_ended_names_none(paths: AppPaths) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    paths.window_lock.write_text(f"{ended.pid}\noctavo\n")
    assert window_process(paths) is None


def test_a_number_that_another_program_has_by_now_is_not_the_windows(paths: AppPaths) -> None:
    paths.window_lock.write_text(f"{os.getpid()}\noctavo\n")
    os.utime(paths.window_lock, (1e9, 1e9))
    assert window_process(paths) is None


@pytest.mark.parametrize("text", ["", "\n", "no number\n"])
def test_a_lock_without_a_number_names_none(paths: AppPaths, text: str) -> None:
    paths.window_lock.write_text(text)
    assert window_process(paths) is None
