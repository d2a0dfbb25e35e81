from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from app.command_line import app_command
from tests.app.documents import samples


def octavo_extract(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*app_command(), "extract", *arguments], capture_output=True)


def test_the_text_is_printed_as_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("größer\r\n2".encode("cp1252"))
    done = octavo_extract(str(tmp_path / "a.txt"), "--encoding", "windows-1252")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, "größer\n2\n", b"")


def test_a_file_that_cannot_be_read_is_one_line_on_standard_error(tmp_path: Path) -> None:
    done = octavo_extract(str(tmp_path / "gone.pdf"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        done.stderr.decode()
        == "octavo: “gone.pdf” was not found. It may have been moved, renamed or deleted.\n"
    )


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_is_one_line_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(samples.pdf_bomb(b"\n", 3 << 30))
    done = octavo_extract(str(tmp_path / "a.pdf"))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "octavo: “a.pdf” needs more memory to read than is allowed. Split it into smaller files.\n"
    )


def test_json_ends_with_the_document_or_the_error(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(samples.pdf([["words"]]))
    done = octavo_extract("--json", str(tmp_path / "a.pdf"))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["opened", "progress", "progress", "text", "document"]
    assert (lines[-1]["num_pages"], lines[-1]["page_starts"]) == (1, [0])
    done = octavo_extract("--json", str(tmp_path / "gone.pdf"))
    assert done.returncode == 1
    assert json.loads(done.stdout)["type"] == "error"


def test_a_pipe_that_is_closed_early_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("line\n" * 100_000)
    command = [*app_command(), "extract", str(tmp_path / "a.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.stderr.read() == b""


def test_neither_mlx_nor_qt_is_loaded_for_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(samples.pdf([["words"]]))
    python, *rest = app_command()
    command = [python, "-X", "importtime", *rest, "extract", "--json", str(tmp_path / "a.pdf")]
    imported = subprocess.run(command, capture_output=True).stderr.decode()
    assert "pypdfium2" in imported
    assert not {"mlx", "PySide6", "numpy", "sqlite3", "lxml"} & {
        line.rpartition("|")[2].strip().partition(".")[0] for line in imported.splitlines()
    }
