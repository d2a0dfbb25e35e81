from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from app.documents.document import DocumentError
from app.documents.reader import read_document
from app.documents.source import quoted_name


def refused(path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        read_document(path)
    return str(caught.value)


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pdf"
    path.touch()
    assert refused(path).startswith("“empty.pdf” is empty")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    assert "was not found" in refused(tmp_path / "gone.pdf")
    assert "was not found" in refused(tmp_path / "gone" / "too.pdf")
    assert "was not found" in refused(Path("nul\0.txt"))


def test_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)
    assert "is a folder" in refused(Path("/"))


def test_a_pipe_a_socket_and_a_device_never_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "pipe" in refused(tmp_path / "pipe.txt")
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.txt")
        assert "pipe" in refused(tmp_path / "socket.txt")
    assert "device" in refused(Path("/dev/zero"))


def test_links(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("words")
    (tmp_path / "link.txt").symlink_to("real.txt")
    assert read_document(tmp_path / "link.txt").text == "words"
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert "leads back to itself" in refused(tmp_path / "loop.txt")
    (tmp_path / "dangling.txt").symlink_to("nothing")
    assert "was not found" in refused(tmp_path / "dangling.txt")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "private.txt"
    path.write_text("words")
    path.chmod(0)
    if os.geteuid() == 0:  # who may read everything

        def refuse(*_: object) -> int:
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    assert "no permission" in refused(path)


def test_names_of_all_kinds(tmp_path: Path) -> None:
    for name in ("📄 naïve 文书.txt", "x" * 251 + ".txt", "-rf.txt", "a\nb.txt", " .txt", "%s{0}.txt"):
        path = tmp_path / name
        path.write_text("words")
        document = read_document(path)
        assert document.text == "words"
        document.source.encode()
        assert document.title
    assert "name is too long" in refused(tmp_path / ("x" * 300))


@pytest.mark.skipif(os.uname().sysname == "Darwin", reason="macOS keeps names as Unicode")
def test_a_name_that_is_no_unicode(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("words")
    document = read_document(path)
    assert document.title == "caf�.txt"
    document.source.encode()


def test_the_name_in_a_message_is_short_and_harmless() -> None:
    assert quoted_name(Path("a/b.txt")) == "“b.txt”"
    assert len(quoted_name(Path("x" * 250 + ".pdf"))) < 90
    assert quoted_name(Path("x" * 250 + ".pdf")).endswith(".pdf”")
    assert "\n" not in quoted_name(Path("a\nb"))
    assert "\u202e" not in quoted_name(Path("a\u202efdp.exe"))
