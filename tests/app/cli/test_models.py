from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.models import models as command
from app.models.library import ModelLibrary
from app.paths import AppPaths
from engine.errors import ModelError
from tests.app.models.conftest import hub, tiny_files  # noqa: F401
from tests.app.models.fake_hub import FakeHub

OCTAVO = [sys.executable, "-P", "-m", "app", "models"]


def run(*arguments: str, input: str | None = None) -> str:
    """Run `octavo models` in this process and return what it printed."""
    result = CliRunner().invoke(command, arguments, input=input, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def elsewhere(octavo_home: Path, tmp_path: Path, tiny_files: dict[str, bytes]) -> Path:  # noqa: F811
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_bytes(tiny_files[name])
    return folder


def test_list_offers_the_catalogue_when_nothing_is_installed(octavo_home: Path) -> None:
    output = run("list")
    assert output.startswith("No model is installed yet.")
    assert "starter" in output
    assert "mlx-community/Llama-3.2-1B-Instruct-4bit 710 MB Llama 3.2" in " ".join(output.split())
    assert not octavo_home.exists()


def test_import_list_and_remove_tell_where_the_files_are(elsewhere: Path) -> None:
    assert run("import", str(elsewhere)) == (
        f"elsewhere is known now as elsewhere; its files stay at {elsewhere}.\n"
    )
    assert f"elsewhere  at {elsewhere}" in run("list")
    assert run("remove", "elsewhere", "--yes") == f"elsewhere is forgotten; its files stay at {elsewhere}.\n"


def test_remove_asks_first(elsewhere: Path) -> None:
    run("import", str(elsewhere))
    refused = CliRunner().invoke(command, ["remove", "elsewhere"], input="n\n")
    assert refused.exit_code == 1
    assert "elsewhere" in run("list")
    assert "is forgotten" in run("remove", "elsewhere", input="y\n")


def test_nothing_is_asked_about_a_model_that_is_not_there(octavo_home: Path) -> None:
    result = CliRunner().invoke(command, ["remove", "nothing"], input="y\n")
    assert isinstance(result.exception, ModelError)
    assert "Remove nothing?" not in result.output


def test_an_unknown_model_is_one_sentence_and_status_1(octavo_home: Path) -> None:
    result = subprocess.run([*OCTAVO, "remove", "nothing", "--yes"], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("octavo: There is no model “nothing” here.")
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_get_as_json_ends_with_the_installed_id(hub: FakeHub, octavo_home: Path) -> None:  # noqa: F811
    result = subprocess.run(
        [*OCTAVO, "get", "org/tiny", "--json"], capture_output=True, text=True, check=True
    )
    first, *_, last = (json.loads(line) for line in result.stdout.splitlines())
    assert first["done_nbytes"] == 0
    assert last == {"installed": "org/tiny"}


def test_get_as_json_ends_with_the_error(hub: FakeHub, octavo_home: Path) -> None:  # noqa: F811
    result = subprocess.run([*OCTAVO, "get", "org/other", "--json"], capture_output=True, text=True)
    assert result.returncode == 1
    assert json.loads(result.stdout)["error"].startswith("There is no model org/other")


@pytest.mark.slow
def test_get_without_a_terminal_prints_lines(hub: FakeHub, octavo_home: Path) -> None:  # noqa: F811
    result = subprocess.run([*OCTAVO, "get", "org/tiny"], capture_output=True, text=True, check=True)
    assert result.stdout == "tiny is installed: org/tiny\n"
    assert result.stderr.startswith("  0 %  0 bytes of 1.0 MB")
    assert "\r" not in result.stderr


@pytest.mark.slow
def test_interrupting_get_stops_and_says_that_it_goes_on(hub: FakeHub, octavo_home: Path) -> None:  # noqa: F811
    hub.stall_after = 300_000
    main, terminal = pty.openpty()
    with subprocess.Popen([*OCTAVO, "get", "org/tiny"], stderr=terminal, text=True) as process:
        os.close(terminal)
        hub.stalled.wait()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 130
    output = b""
    try:
        while chunk := os.read(main, 1024):
            output += chunk
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(main)
    assert b"\r" in output
    assert output.endswith(b"the same command goes on with it.\r\n")
    library = ModelLibrary(AppPaths(octavo_home))
    assert library.unfinished() == ["org/tiny"]
    with pytest.raises(ModelError):
        library.find("org/tiny")
