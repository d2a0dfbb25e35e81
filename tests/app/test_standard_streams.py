"""Commands whose standard streams are closed, full, or in an encoding that lacks characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.command_line import app_command

REPORT = """
import os, sys
from app.standard_streams import prepare_standard_streams
prepare_standard_streams()
with open(sys.argv[1], "x") as file:
    assert file.fileno() > 2
    print("into nothing", flush=True)
    file.write(repr(sys.stdin.read()))
"""


def test_closed_streams_are_empty_and_give_their_numbers_to_no_file(tmp_path: Path) -> None:
    written = tmp_path / "written"
    command = f'"{sys.executable}" -c "$REPORT" "{written}" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", command], env=os.environ | {"REPORT": REPORT})
    assert done.returncode == 0
    assert written.read_text() == "''"


def test_a_character_that_the_terminal_lacks_is_escaped(tmp_path: Path) -> None:
    code = (
        "from app.standard_streams import prepare_standard_streams\n"
        "prepare_standard_streams()\nprint('a\\u4f60')"
    )
    environ = os.environ | {"PYTHONIOENCODING": "ascii"}
    assert subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True).stdout == (
        b"a\\u4f60\n"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("command", [["models", "list"], ["extract"]])
def test_a_full_disk_under_the_output_is_one_sentence(
    octavo_home: Path, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "a.txt").write_text("words")
    arguments = [*command, str(tmp_path / "a.txt")] if command == ["extract"] else command
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*app_command(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "octavo: What is printed cannot be written: No space left on device.\n"
