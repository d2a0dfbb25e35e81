from __future__ import annotations

import io

import docx
import pytest

from app.documents.formats import SUFFIXES, file_filter
from tests.app.documents import samples
from tests.app.documents.conftest import Read, Refusal


def test_content_decides_before_the_name(read: Read) -> None:
    pdf = samples.pdf([["words"]])
    buffer = io.BytesIO()
    document = docx.Document()
    document.add_paragraph("words")
    document.save(buffer)
    epub = samples.epub({"a.xhtml": "<html><body>words</body></html>"})
    for content, kind in (
        (pdf, "pdf"),
        (buffer.getvalue(), "docx"),
        (epub, "epub"),
        (b"<html>words", "html"),
    ):
        for name in ("a.txt", "a", "a.pdf", "a.docx", "a.epub", "a.jpg"):
            found = read(name, content)
            assert (found.kind, found.text) == (kind, "words")
    assert read("a.docx", "words").kind == "text"


def test_code_about_another_format_stays_code(read: Read) -> None:
    assert read("a.py", 'START = b"%PDF-1.7"\n').kind == "code"
    assert read("a.php", "<!DOCTYPE html><html><?php x(); ?></html>").kind == "code"
    assert read("a.md", "<html>raw</html>").kind == "markdown"


def test_a_pdf_with_bytes_before_its_header(read: Read) -> None:
    assert read("a.pdf", b"\xef\xbb\xbf\r\n" + samples.pdf([["words"]])).kind == "pdf"
    assert read("a.pdf", b"HTTP header\n" + samples.pdf([["words"]])).kind == "pdf"


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"\x89PNG\r\n\x1a\n", "a picture"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"RIFF\0\0\0\0WEBP", "a picture"),
        (b"RIFF\0\0\0\0WAVE", "a sound recording"),
        (b"\0\0\0\x20ftypheic", "a picture"),
        (b"\0\0\0\x20ftypisom", "a video"),
        (b"ID3\x04", "a sound recording"),
        (b"\x1aE\xdf\xa3", "a video"),
        (b"\x1f\x8b\x08", "an archive"),
        (b"7z\xbc\xaf\x27\x1c", "an archive"),
        (b"{\\rtf1\\ansi", "a word processor document"),
        (b"%!PS-Adobe", "a print file"),
        (b"\x7fELF", "a program"),
        (b"SQLite format 3\0", "a database"),
        (b"GGUF\x03\0\0\0", "a model"),
        (bytes(60) + b"BOOKMOBI", "an e-book"),
        (bytes(257) + b"ustar", "an archive"),
        (samples.OLE_START + bytes(99) + "WordDocument".encode("utf-16-le"), "an old Word document"),
        (samples.OLE_START + bytes(99) + "Workbook".encode("utf-16-le"), "a spreadsheet"),
        (samples.OLE_START + bytes(99) + "PowerPoint Document".encode("utf-16-le"), "a presentation"),
        (samples.OLE_START + bytes(99), "an old Office file"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a"])
def test_other_formats_are_known_by_their_content(
    refusal: Refusal, start: bytes, said: str, name: str
) -> None:
    message = refusal(name, start + bytes(range(256)))
    assert f" is {said}" in message


@pytest.mark.parametrize(
    ("name", "said", "instead"),
    [
        ("a.doc", "an old Word document", "DOCX or PDF"),
        ("a.odt", "a word processor document", "DOCX or PDF"),
        ("a.xls", "a spreadsheet", "CSV or PDF"),
        ("a.ppt", "a presentation", "PDF"),
        ("a.JPEG", "a picture", "OCR"),
        ("a.mp3", "a sound recording", "speech recognition"),
        ("a.mkv", "a video", "speech recognition"),
        ("a.azw3", "an e-book", "EPUB or PDF"),
        ("a.rar", "an archive", "Unpack"),
        ("a.safetensors", "a model", "models"),
    ],
)
def test_binary_data_of_no_known_start_is_named_by_its_suffix(
    refusal: Refusal, name: str, said: str, instead: str
) -> None:
    message = refusal(name, bytes(range(1, 256)) * 9)
    assert f" is {said}" in message
    assert instead in message


@pytest.mark.parametrize(
    ("members", "name", "said"),
    [
        ({"xl/workbook.xml": "x"}, "a.xlsx", "a spreadsheet"),
        ({"ppt/presentation.xml": "x"}, "a.txt", "a presentation"),
        ({"mimetype": "x", "content.xml": "x"}, "a.odt", "a word processor document"),
        ({"mimetype": "x", "content.xml": "x"}, "a.ods", "a spreadsheet"),
        ({"Index/Document.iwa": "x"}, "a.pages", "a word processor document"),
        ({"a.txt": "x"}, "a.zip", "an archive"),
        ({}, "a.zip", "an archive"),
    ],
)
def test_zip_files_are_known_by_their_members(
    refusal: Refusal, members: dict[str, str], name: str, said: str
) -> None:
    assert f" is {said}" in refusal(name, samples.zipped(members))


def test_a_web_archive_is_refused_though_it_is_text(refusal: Refusal) -> None:
    assert "a web archive" in refusal("a.mht", "MIME-Version: 1.0\n")


def test_text_with_the_name_of_an_old_format_is_read(read: Read) -> None:
    assert read("README.doc", "just text").kind == "text"


def test_the_file_dialog_offers_every_suffix() -> None:
    first, *_, last = file_filter().split(";;")
    assert last == "All files (*)"
    for suffix in SUFFIXES:
        assert f"*{suffix} " in first.replace(")", " ")
        assert suffix == suffix.lower()
