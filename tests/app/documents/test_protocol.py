from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.document import Document, DocumentError
from app.documents.protocol import DocumentReceiver, document_lines, error_line, progress_line

valid_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(valid_text, valid_text, st.lists(st.integers(0, 400), max_size=6))
def test_a_document_arrives_whole_whatever_pieces_it_comes_in(text: str, title: str, cuts: list[int]) -> None:
    sent = Document(title, "/a/b", "text", text * 3, 3, 1, "koi8-r", True)
    data = progress_line(1, 3) + b"".join(document_lines(sent))
    receiver = DocumentReceiver()
    edges = [0, *sorted(cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        receiver.feed(data[start:end])
    assert receiver.document == sent


def test_a_long_text_goes_in_pieces() -> None:
    sent = Document("t", "s", "text", "añ\n" * 500_000)
    lines = list(document_lines(sent))
    assert len(lines) > 10
    assert max(map(len, lines)) < 1_000_000
    receiver = DocumentReceiver()
    receiver.feed(b"".join(lines))
    assert receiver.document == sent


def test_every_line_is_an_object_with_a_type() -> None:
    document = Document("t", "s", "pdf", "words", 1)
    lines = [progress_line(0, 1), *document_lines(document), error_line(DocumentError("“a” is bad."))]
    assert [json.loads(line)["type"] for line in lines] == ["progress", "text", "document", "error"]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


def test_progress_is_passed_on() -> None:
    seen: list[tuple[int, int]] = []
    receiver = DocumentReceiver(lambda *parts: seen.append(parts))
    receiver.feed(progress_line(1, 3) + progress_line(2, 3))
    assert seen == [(1, 3), (2, 3)]
    assert receiver.document is None


def test_an_error_is_raised_with_its_sentence() -> None:
    with pytest.raises(DocumentError, match="“é” is bad"):
        DocumentReceiver().feed(error_line(DocumentError("“é” is bad.")))
