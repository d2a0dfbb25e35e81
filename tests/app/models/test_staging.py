from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.models.staging import Staging, discard, disk_errors, unfinished_ids
from engine.errors import ModelError

HOLD = """
import sys
from pathlib import Path
from app.models.staging import Staging
with Staging(Path(sys.argv[1]), "org/name").claim():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_that_downloads_the_same_is_named_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.staging.CLAIM_TIMEOUT_S", 0.0)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        staging = Staging(tmp_path, "org/name")
        staging.scratch.mkdir()
        with (
            pytest.raises(ModelError, match="Another Octavo is already downloading org/name"),
            staging.claim(),
        ):
            pass
        staging.discard_scratch()
        assert staging.scratch.exists()
        with Staging(tmp_path, "org/other").claim():
            pass
        other.kill()
        other.wait()
    with staging.claim():
        assert not staging.scratch.exists()


def test_the_folder_is_there_though_another_process_discarded_it_before_it_let_go(tmp_path: Path) -> None:
    staging = Staging(tmp_path, "org/name")
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"held\n"
        staging.discard()
        other.stdin.close()
        with staging.claim():
            staging.require_space(0)


def test_a_download_that_cannot_fit_is_refused_with_the_numbers(tmp_path: Path) -> None:
    staging = Staging(tmp_path, "org/huge")
    with staging.claim():
        with pytest.raises(
            ModelError, match=r"org/huge needs 1,000,000 GB more .* are free\. Free at least .* GB"
        ):
            staging.require_space(10**15)
        staging.require_space(0)


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "is full"),
        (errno.EDQUOT, "is full"),
        (errno.EROFS, "may not write"),
        (errno.EACCES, "may not"),
    ],
)
def test_a_failing_disk_is_a_sentence_that_names_the_folder(
    tmp_path: Path, number: int, sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence) as caught, disk_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert str(tmp_path) in str(caught.value)


def test_only_downloads_that_left_files_are_unfinished(tmp_path: Path) -> None:
    assert unfinished_ids(tmp_path) == []
    with Staging(tmp_path, "starter").claim():
        pass
    with Staging(tmp_path, "org/name@v1").claim():
        (Staging(tmp_path, "org/name@v1").folder / "weights.part").write_bytes(b"x")
    assert unfinished_ids(tmp_path) == ["org/name@v1"]


def test_discard_deletes_a_folder_and_what_an_interrupted_one_left(tmp_path: Path) -> None:
    left = tmp_path / ".staging" / ".removed-before" / "model"
    left.mkdir(parents=True)
    (left / "weights").write_bytes(b"x")
    model = tmp_path / "org--name"
    model.mkdir()
    (model / "weights").write_bytes(b"x")
    assert unfinished_ids(tmp_path) == []
    discard(tmp_path, model)
    assert not model.exists()
    assert list((tmp_path / ".staging").iterdir()) == []


def test_a_file_in_the_place_of_the_data_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("mine")
    with (
        pytest.raises(ModelError, match="a file lies where it should be"),
        Staging(tmp_path / "home" / "models", "org/name").claim(),
    ):
        pass
    assert (tmp_path / "home").read_text() == "mine"
