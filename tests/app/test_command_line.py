from __future__ import annotations

import subprocess
import sys

import pytest

from app.command_line import app_command


def test_the_command_runs_octavo() -> None:
    done = subprocess.run([*app_command(), "extract", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "the text of FILE" in done.stdout


def test_a_bundle_is_its_own_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert app_command() == [sys.executable]
