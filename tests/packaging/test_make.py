"""What make says before it does anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can be without a display")
def test_run_without_a_display_names_the_terminal_command_and_sets_nothing_up() -> None:
    hidden = (
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "MAKELEVEL",
        "MAKEFLAGS",
    )  # the tests may run under make themselves
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        ["make", "run"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "no display" in done.stderr
    assert ".venv/bin/octavo ask" in done.stderr
    assert done.stdout == ""
