"""Files made to take memory or time, and files that change: a sentence or a right result, soon."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from app.documents.document import DocumentError
from app.documents.extract import extract
from app.documents.formats import Format
from app.documents.reader import read_document
from tests.app.documents import samples
from tests.app.documents.conftest import Read, Refusal

PARAGRAPH = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"


def refused(path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        extract(path)
    return str(caught.value)


def bomb(member: str, start: str, num_bytes: int, file: bytes) -> bytes:
    """Return a zip file with one member replaced by one that unpacks to many zeros after `start`."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(file)) as source,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            if name != member:
                target.writestr(name, source.read(name))
        with target.open(member, "w") as unpacked:
            unpacked.write(start.encode())
            for _ in range(num_bytes >> 20):
                unpacked.write(b" " * (1 << 20))
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "member", "file"),
    [
        ("a.docx", "word/document.xml", samples.docx("")),
        ("a.epub", "OEBPS/a.xhtml", samples.epub({"a.xhtml": "<p>x</p>"})),
        ("a.epub", "OEBPS/content.opf", samples.epub({"a.xhtml": "<p>x</p>"})),
    ],
)
def test_a_zip_bomb_is_refused(tmp_path: Path, name: str, member: str, file: bytes) -> None:
    (tmp_path / name).write_bytes(bomb(member, "<p>", 1 << 29, file))
    assert "unpacks to more than" in refused(tmp_path / name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "num_bytes"),
    [(b"\n", 3 << 30), (b"BT /F1 9 Tf (words) Tj ET\n", 1 << 30)],
    ids=["blank", "words"],
)
def test_a_pdf_whose_page_unpacks_to_very_much_is_refused(
    tmp_path: Path, line: bytes, num_bytes: int
) -> None:
    file = samples.pdf_bomb(line, num_bytes)
    assert len(file) < 100_000
    (tmp_path / "a.pdf").write_bytes(file)
    assert "needs more memory to read than is allowed" in refused(tmp_path / "a.pdf")


def test_chapters_that_unpack_to_too_much_together_are_refused(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.documents.archive.MAX_UNPACKED_NBYTES", 10_000)
    chapters = {f"{number}.xhtml": f"<p>{'word ' * 500}</p>" for number in range(5)}
    assert "unpacks to more than" in refusal("a.epub", samples.epub(chapters))


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize("place", ["<w:t>&l11;</w:t>", "<w:t a='&l11;'>x</w:t>", "<w:t>&file;</w:t>"])
def test_entities_neither_multiply_nor_fetch(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret").write_text("secret words")
    document = samples.docx(PARAGRAPH.format("words") + f"<w:p><w:r>{place}</w:r></w:p>")
    declared = f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}<!ENTITY file SYSTEM "file://{tmp_path}/secret">]>'
    members = samples.members(document)
    members["word/document.xml"] = declared.encode() + members["word/document.xml"]
    path = tmp_path / "a.docx"
    path.write_bytes(samples.zipped(members))
    try:
        text = extract(path).text
    except DocumentError as error:
        assert "damaged" in str(error)
    else:
        assert text.startswith("words")
        assert "secret" not in text and "haha" not in text


def test_entities_in_a_book_neither_multiply_nor_fetch(read: Read, tmp_path: Path) -> None:
    declared = f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}<!ENTITY file SYSTEM "file://{tmp_path}/secret">]>'
    (tmp_path / "secret").write_text("secret words")
    document = read("a.epub", samples.epub({"a.xhtml": f"{declared}<html><p>words &l11; &file;</p></html>"}))
    assert "words" in document.text
    assert "secret words" not in document.text and "haha" not in document.text


def test_a_page_with_very_many_pieces_of_text_is_read_soon(tmp_path: Path) -> None:
    page = [samples.Words(10 + 7 * (n % 80), 800 - n // 80, str(n % 10), 1) for n in range(30_000)]
    (tmp_path / "a.pdf").write_bytes(samples.placed_pdf([page]))
    assert extract(tmp_path / "a.pdf").num_pages == 1


@pytest.mark.slow
def test_a_thousand_pages_are_read_in_seconds_with_progress(tmp_path: Path) -> None:
    page = [samples.Words(50, 780 - 14 * line, f"{line} the words of a line " * 3) for line in range(50)]
    (tmp_path / "a.pdf").write_bytes(samples.placed_pdf([page] * 1000))
    seen: list[int] = []
    document = extract(tmp_path / "a.pdf", on_progress=lambda done, total: seen.append(done))
    assert len(document.page_starts) == document.num_pages == 1000
    assert seen == sorted(seen) and seen[-1] == 1000 and len(seen) > 10


def change_when_open(path: Path, change: bytes | None) -> None:
    """Read the document and put `change` in its place, or cut it, as soon as it is open."""

    def put() -> None:
        if change is None:
            os.truncate(path, path.stat().st_size // 2)
        else:
            path.write_bytes(change)
        os.utime(path, ns=(0, 0))  # clocks of file systems are coarse

    read_document(path, on_open=put)


@pytest.mark.parametrize("content", [samples.pdf([["x"]] * 40), b"text " * 50_000], ids=["pdf", "text"])
@pytest.mark.parametrize("change", [None, b"words"], ids=["cut", "written anew"])
def test_a_file_that_changes_while_it_is_read_is_named(
    tmp_path: Path, content: bytes, change: bytes | None
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DocumentError, match="was changed while it was read"):
        change_when_open(path, change)


def test_a_log_that_grows_while_it_is_read_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"two\n")

    assert read_document(path, on_open=grow).text in ("one\n", "one\ntwo\n")


def test_a_file_that_is_deleted_while_it_is_read_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(samples.pdf([["words"]]))
    assert read_document(path, on_open=path.unlink).text == "words"


def test_a_disk_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: object, encoding: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("app.documents.plain.read_plain", fail)
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(DocumentError, match=r"could not be read \(Input/output error\).*network drive"):
        read_document(tmp_path / "a.txt")


@pytest.mark.parametrize(
    "name",
    ["🦉" * 63 + ".md", "x" * 252 + ".md", "é" * 126 + ".md", "a\nb\u202e.md", os.fsdecode(b"\xff\xfe.md")],
    ids=["emoji", "255 bytes", "accents", "controls", "bytes"],
)
def test_names_of_any_kind_are_read_and_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("words")
    document = extract(tmp_path / name)
    assert document.text == "words"
    assert document.title.encode() and document.title.endswith(".md")
    (tmp_path / name).write_text("")
    assert "is empty" in refused(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="has no /proc")
def test_a_file_that_does_not_say_its_size_is_read_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Threads:" in read_document(Path("/proc/self/status")).text
    monkeypatch.setattr("app.documents.plain.MAX_FILE_NBYTES", dict.fromkeys(Format, 100))
    with pytest.raises(DocumentError, match="can be up to 100 bytes"):
        read_document(Path("/proc/self/status"))
