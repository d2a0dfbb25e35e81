"""The program as its user has it: a process of its own, a real display, a window manager and a keyboard."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.command_line import app_command
from app.paths import AppPaths
from tests.display import XDisplay, wait_until
from tests.driven_window import choose_model, driven_window

pytestmark = pytest.mark.slow


@pytest.fixture
def paths(octavo_home: Path, starter_gguf: Path) -> AppPaths:
    """A data folder in which the starter model was used last."""
    paths = AppPaths(octavo_home)
    choose_model(paths, starter_gguf)
    return paths


def test_a_question_is_typed_and_answered_and_is_there_after_a_restart(
    paths: AppPaths, x_display: XDisplay
) -> None:
    with driven_window(app_command(), x_display.environment, x_display, paths) as window:
        window.ask("What is the capital of France?")
        assert window.states("assistant") == ["complete"]
        assert window.quit() == 0
    with driven_window(app_command(), x_display.environment, x_display, paths) as window:
        assert "What is the capital of France?" in window.title
        window.ask("And of Italy?")
        assert window.states("assistant") == ["complete", "complete"]
        assert window.quit() == 0


def test_a_second_start_raises_the_window_of_the_first(paths: AppPaths, x_display: XDisplay) -> None:
    with driven_window(app_command(), x_display.environment, x_display, paths) as window:
        x_display.xdotool("windowminimize", "--sync", window.window)
        shown = ("search", "--onlyvisible", "--name", "Octavo")
        wait_until(lambda: not x_display.xdotool(*shown), 30, "the window to be minimized")
        second = subprocess.run(app_command(), env=x_display.environment, timeout=60)
        assert second.returncode == 0
        assert x_display.window(window.process.pid, "Octavo") == window.window
        assert window.quit() == 0
