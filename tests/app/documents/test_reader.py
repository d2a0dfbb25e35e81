from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.documents.document import DocumentError
from app.documents.formats import SUFFIXES
from app.documents.limits import MAX_FILE_NBYTES
from app.documents.reader import read_document
from tests.app.documents import samples
from tests.app.documents.conftest import Refusal

PAGE = "<html><body><h1>x</h1><table><tr><td>1<td>2<tr><td>3<td>4</table></body></html>"
WHOLE_FILES = [
    samples.pdf([["one"], ["two"]], title="T"),
    samples.pdf_with_glyphs([1, 2], {1: "لا", 2: "ab"}),
    samples.docx(
        "<w:p><w:r><w:t>x</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>", styles=""
    ),
    samples.epub({"a.xhtml": PAGE}),
    PAGE.encode(),
    "Привет, мир".encode("cp1251"),
]
suffixes = st.sampled_from([*SUFFIXES, "", ".doc", ".xyz"])


def read_or_refuse(content: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{suffix}"
        path.write_bytes(content)
        try:
            document = read_document(path)
        except DocumentError as error:
            assert str(error).startswith(f"“{path.name}” ")
        else:
            assert document.text.strip()
            document.text.encode()


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=2000), suffixes)
def test_random_bytes_are_read_or_refused(content: bytes, suffix: str) -> None:
    read_or_refuse(content, suffix)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(WHOLE_FILES), st.data())
def test_damaged_files_are_read_or_refused(whole: bytes, data: st.DataObject) -> None:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(len(content) // 2, len(content)))
    read_or_refuse(bytes(content[:cut]), data.draw(suffixes))


@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.md", "a.py", "a.pdf"])
def test_a_file_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(samples.pdf([["x"]]) if name == "a.pdf" else b"text\n" * 20_000)
    os.truncate(path, MAX_FILE_NBYTES[SUFFIXES[path.suffix]] + 1)  # the rest is a hole that takes no room
    with pytest.raises(DocumentError, match="can be up to"):
        read_document(path)


def test_the_sentence_about_size_says_how_large_it_may_be(
    refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.documents.reader.MAX_FILE_NBYTES", dict.fromkeys(MAX_FILE_NBYTES, 2000))
    assert "is 3.0 KB; text files can be up to 2.0 KB" in refusal("a.txt", "x" * 3000)


def test_memory_that_runs_out_is_no_damage(refusal: Refusal, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(source: object, encoding: object) -> None:
        raise MemoryError

    monkeypatch.setattr("app.documents.plain.read_plain", run_out)
    assert "needs more memory" in refusal("a.txt", "x")
