"""The bundle in dist/octavo as its user has it: no Python, no packages, a model in a folder, a display."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.paths import AppPaths
from tests.display import XDisplay
from tests.driven_window import ANSWER_TIMEOUT_S, choose_model, driven_window

PROGRAM = Path(__file__).parents[2] / "dist" / "octavo" / "octavo"

pytestmark = [pytest.mark.slow, pytest.mark.bundle]


@pytest.fixture
def environment(octavo_home: Path) -> dict[str, str]:
    """An environment in which no Python of this machine is found."""
    kept = ("HOME", "LANG", "TMPDIR", "OPENBLAS_CORETYPE")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return environment | {"OCTAVO_HOME": str(octavo_home), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def model(tmp_path: Path, starter_gguf: Path, environment: dict[str, str]) -> Path:
    """The starter model in a folder of the user's own, known to the bundle."""
    folder = tmp_path / "my models"
    folder.mkdir()
    model = folder / starter_gguf.name
    shutil.copyfile(starter_gguf, model)
    octavo("models", "import", str(model), environment=environment)
    return model


def octavo(*arguments: str, environment: dict[str, str]) -> str:
    """Run a terminal command of the bundle and return what it printed."""
    done = subprocess.run(
        [PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_terminal_answers_about_a_document(
    model: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    paper = tmp_path / "paper.md"
    paper.write_text("# Expedition\n\nThe captain of the ship is called Marmalade.\n", encoding="utf-8")
    question = ("ask", "What is the captain called?", "--file", str(paper), "--model", str(model))
    answer = octavo(*question, "--max-tokens", "24", "--temperature", "0", environment=environment)
    assert "Marmalade" in answer


def test_the_doctor_finds_the_bundled_openblas(environment: dict[str, str]) -> None:
    assert str(PROGRAM.parent / "_internal" / "ngsolve_openblas") in octavo("doctor", environment=environment)


def test_the_window_answers_and_closes(
    model: Path, environment: dict[str, str], x_display: XDisplay, octavo_home: Path, tmp_path: Path
) -> None:
    paths = AppPaths(octavo_home)
    choose_model(paths, model)
    with driven_window([PROGRAM], environment, x_display, paths) as window:
        window.ask("What is the capital of France?")
        x_display.screenshot(tmp_path / "window.png")
        assert window.states("assistant") == ["complete"]
        assert window.quit() == 0
