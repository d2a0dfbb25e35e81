from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.command_line import app_command


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*app_command(), *arguments], cwd=folder, capture_output=True, text=True)


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


def test_a_command_is_one_even_beside_a_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("words")
    done = run(tmp_path, "models")
    assert "Show, get and remove models." in done.stdout + done.stderr


def test_without_a_display_one_sentence_names_the_command_that_does_the_same(tmp_path: Path) -> None:
    (tmp_path / "paper.txt").write_text("words")
    (tmp_path / "folder").mkdir()
    for arguments in ([], ["paper.txt"], ["paper.txt", "folder"]):
        done = run(tmp_path, *arguments)
        assert done.returncode == 2
        assert "octavo ask" in done.stderr and "Traceback" not in done.stderr


def test_a_seed_that_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    done = run(tmp_path, "ask", "Why?", "--seed", "-1")
    assert done.returncode == 1
    assert done.stderr.startswith("octavo: seed is -1; it must be from 0 to ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "paper.txt").write_text("words")
    done = run(tmp_path, "paper.txt", "papper.pdf")
    assert done.returncode == 2
    assert "no file or command “papper.pdf”" in done.stderr and "--help" in done.stderr


def test_options_are_left_to_the_commands(tmp_path: Path) -> None:
    assert "Usage:" in run(tmp_path, "--help").stdout
    assert "No such option" in run(tmp_path, "--nonsense").stderr


def test_nothing_that_the_window_begins_with_imports_mlx() -> None:
    """Once MLX is there, OpenBLAS comes too late, and prompts are read some twenty times slower."""
    code = "import sys, app.__main__, ui.application; sys.exit('mlx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
