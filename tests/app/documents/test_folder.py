from __future__ import annotations

import os
from pathlib import Path

import pytest

import app.documents.folder
from app.documents.document import DocumentError
from app.documents.folder import folder_documents
from engine.cancel import CancelToken
from engine.errors import Cancelled


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, content in {
        "src/main.py": b"print('hello')\n",
        "src/deep/er/notes.md": b"# Notes\n",
        "readme": b"Read me.\n",
        "paper.pdf": b"%PDF-1.7\n\0\0",
        "logo.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        "empty.txt": b"",
        "huge.csv": b"1,2,3\n" * 200_000,
        ".env": b"SECRET=1\n",
        ".git/HEAD": b"ref: refs/heads/main\n",
        "node_modules/left/index.js": b"module.exports = 1\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def test_documents_are_named_by_their_paths_from_the_folder_on(project: Path) -> None:
    found = folder_documents(project, CancelToken())
    titles = ["project/paper.pdf", "project/readme", "project/src/main.py", "project/src/deep/er/notes.md"]
    assert [each.title for each in found.files] == titles
    assert [each.path for each in found.files] == [project.parent / title for title in titles]


def test_what_is_left_out_is_said(project: Path) -> None:
    summary = folder_documents(project, CancelToken()).summary
    assert summary.startswith("4 files of “project” were attached. Left out: ")
    for words in (".git", "node_modules", "(no text)", "(empty)", "(larger than 1 MB)", "(hidden)"):
        assert words in summary


def test_a_link_that_leads_back_is_not_followed(project: Path) -> None:
    (project / "src" / "loop").symlink_to(project, target_is_directory=True)
    (project / "src" / "link.py").symlink_to(project / "src" / "main.py")
    assert len(folder_documents(project, CancelToken()).files) == 4


def test_a_pipe_is_not_opened(project: Path) -> None:
    os.mkfifo(project / "pipe.txt")
    assert "1 file (links and devices)" in folder_documents(project, CancelToken()).left_out


def test_no_more_files_are_taken_than_are_allowed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app.documents.folder, "MAX_FILES", 2)
    found = folder_documents(project, CancelToken())
    assert len(found.files) == 2
    assert "2 files (more than 2)" in found.left_out


def test_a_folder_without_documents_is_refused_with_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    with pytest.raises(
        DocumentError, match=r"holds no document that can be read. Left out: 1 file \(no text\)"
    ):
        folder_documents(tmp_path, CancelToken())


def test_looking_through_a_folder_can_be_stopped(project: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        folder_documents(project, cancel)
