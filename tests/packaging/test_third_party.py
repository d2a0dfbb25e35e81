"""The list of licences against what is installed and what is locked."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def listed() -> dict[str, str]:
    rows = (ROOT / "packaging" / "THIRD_PARTY.md").read_text(encoding="utf-8").splitlines()
    return dict(
        row.strip("| ").split(" | ")
        for row in rows
        if row.startswith("| ") and row != "| package | licence |"
    )


def test_the_list_is_what_make_lock_prints() -> None:
    printed = subprocess.run(
        [sys.executable, "packaging/third_party.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (ROOT / "packaging" / "THIRD_PARTY.md").read_text(encoding="utf-8") == printed.stdout


def test_every_locked_package_that_is_not_for_developers_is_listed() -> None:
    """The comments in the lock name who asked for a package: the tree without a look at what is installed."""
    wanted_by: dict[str, set[str]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"([\w.-]+)==([^;]+)(;.*(win32|emscripten)')?", line):
            package = found[1]
        elif found := re.match(r"    #(?: via)?\s+(\S.*)", line):
            wanted_by.setdefault(package, set()).add(found[1])
    runtime = {"octavo (pyproject.toml)"}
    while grown := {name for name, parents in wanted_by.items() if parents & runtime} - runtime:
        runtime |= grown
    runtime -= {"octavo (pyproject.toml)", "colorama", "httpx2-jsfetch"}  # for Windows and the browser
    assert runtime == set(listed())


def test_no_package_is_under_a_licence_that_octavo_could_not_be_given_away_with() -> None:
    copyleft = {name for name, licence in listed().items() if "GPL" in licence}
    assert copyleft == {"pyside6-essentials", "shiboken6"}
    assert all("LGPL-3.0-only OR" in listed()[name] for name in copyleft)
