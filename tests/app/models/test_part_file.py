from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.part_file import Checksum, PartFile
from engine.errors import ModelError


def sha256_of(content: bytes) -> Checksum:
    return Checksum(len(content), hashlib.sha256(content).hexdigest())


def ignore(nbytes: int) -> None:
    pass


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 8))
def test_a_file_written_in_two_tries_is_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], first: int
) -> None:
    target = tmp_path_factory.mktemp("part") / "sub" / "weights"
    content = b"".join(chunks)
    with PartFile(target, sha256_of(content), ignore) as part:
        for chunk in chunks[:first]:
            part.append(chunk)
    assert not target.exists()
    with PartFile(target, sha256_of(content), ignore) as part:
        assert part.nbytes == len(b"".join(chunks[:first]))
        for chunk in chunks[first:]:
            part.append(chunk)
        part.finish()
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["weights"]


@pytest.mark.parametrize("written", [b"hellx", b"hell", b"hello!"])
def test_a_wrong_file_is_deleted_and_refused(tmp_path: Path, written: bytes) -> None:
    with (
        pytest.raises(ModelError, match="weights arrived damaged"),
        PartFile(tmp_path / "weights", sha256_of(b"hello"), ignore) as part,
    ):
        part.append(written)
        part.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_beginning_of_other_content_is_not_gone_on_with(tmp_path: Path) -> None:
    with PartFile(tmp_path / "weights", sha256_of(b"old content"), ignore) as part:
        part.append(b"old")
    with PartFile(tmp_path / "weights", sha256_of(b"new content"), ignore) as part:
        assert part.nbytes == 0


def test_restart_forgets_what_was_written(tmp_path: Path) -> None:
    with PartFile(tmp_path / "weights", sha256_of(b"hello"), ignore) as part:
        part.append(b"hexxx")
        part.restart()
        part.append(b"hello")
        part.finish()
    assert (tmp_path / "weights").read_bytes() == b"hello"


def test_a_git_blob_has_the_checksum_that_git_gives_it(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b'{"model_type": "llama"}\n')
    blob = subprocess.run(
        ["git", "hash-object", file], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Checksum(file.stat().st_size, blob, git_blob=True).matches(file, ignore)
    assert not Checksum(file.stat().st_size, "0" * 40, git_blob=True).matches(file, ignore)
    assert not Checksum(file.stat().st_size, blob, git_blob=True).matches(tmp_path / "missing", ignore)
