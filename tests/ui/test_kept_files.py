from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ui.chat.drop import FileData
from ui.kept_files import KeptFiles


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeptFiles]:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr("ui.kept_files._temporary_places", lambda: [place])
    files = KeptFiles()
    yield files
    files.clear()


def test_a_temporary_file_can_be_read_after_its_program_has_deleted_it(
    kept: KeptFiles, tmp_path: Path
) -> None:
    path = tmp_path / "tmp" / "mail-attachment.txt"
    path.write_text("From the mail.", encoding="utf-8")
    copy = kept.kept(path)
    path.unlink()
    assert (copy.name, copy.read_text(encoding="utf-8")) == ("mail-attachment.txt", "From the mail.")
    kept.let_go(copy)
    assert not copy.exists()


def test_other_files_are_read_where_they_are_and_never_deleted(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Mine.", encoding="utf-8")
    assert kept.kept(path) == path
    kept.written(FileData("x.pdf", b"%PDF"))
    kept.let_go(path)
    kept.clear()
    assert path.exists()


def test_two_files_of_the_same_name_are_kept_apart(kept: KeptFiles) -> None:
    one, two = kept.written(FileData("a.pdf", b"one")), kept.written(FileData("a.pdf", b"two"))
    assert (one.read_bytes(), two.read_bytes()) == (b"one", b"two")


def test_nothing_stays_behind(kept: KeptFiles, tmp_path: Path) -> None:
    kept.written(FileData("a.pdf", b"one"))
    kept.clear()
    assert list((tmp_path / "tmp").iterdir()) == []
