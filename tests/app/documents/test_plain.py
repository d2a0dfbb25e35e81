from __future__ import annotations

import pytest

from tests.app.documents.conftest import Read, Refusal


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.txt", "text"),
        ("a", "text"),
        ("README", "text"),
        ("a.unknown", "text"),
        ("a.csv", "text"),
        ("a.py", "code"),
        ("A.PY", "code"),
        ("a.tex", "code"),
        ("a.md", "markdown"),
    ],
)
def test_text_is_kept_as_it_is(read: Read, name: str, kind: str) -> None:
    text = "\n  if x:\n\treturn  1   \n\n\n\n# end"
    document = read(name, text.replace("\n", "\r\n"))
    assert (document.text, document.kind, document.encoding) == (text, kind, "utf-8")
    assert not document.encoding_guessed


def test_a_guessed_encoding_is_flagged_and_can_be_changed(read: Read) -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n" * 3
    document = read("a.txt", text.encode("koi8-r"))
    assert document.encoding_guessed
    changed = read("a.txt", text.encode("koi8-r"), encoding="koi8-r")
    assert (changed.text, changed.encoding, changed.encoding_guessed) == (text, "koi8-r", False)


def test_markdown_takes_its_title_from_a_heading_at_the_start(read: Read) -> None:
    assert read("a.md", "# The `Title` #\n\n## Second\n\n```\n# code\n```").title == "The `Title`"
    assert read("a.md", "---\nlang: en\n---\n\n# Notes\n").title == "Notes"
    assert read("a.md", "Words first.\n\n# Not it").title == "a.md"
    assert read("b.txt", "# A comment").title == "b.txt"


def test_markdown_of_several_chapters_is_named_after_its_file_and_not_its_first_chapter(read: Read) -> None:
    assert read("a.md", "# Chapter 1\n\nwords\n\n# Chapter 2\n\nwords").title == "a.md"
    assert read("a.md", "Chapter 1\n=========\n\nwords").title == "a.md"
    assert read("a.md", "# Chapter 1\n\nwords\n\nChapter 2\n=========\n").title == "a.md"


def test_binary_data_is_refused_whatever_its_name(refusal: Refusal) -> None:
    for name in ("a.txt", "a.py", "a", "a.md", "a.html"):
        assert "binary data" in refusal(name, bytes(range(256)) * 20)


def test_binary_data_behind_a_start_of_text_is_refused(refusal: Refusal) -> None:
    assert "binary data" in refusal("install.sh", b"#!/bin/sh\n" * 10_000 + bytes(range(256)) * 2000)


def test_white_space_alone_is_no_text(refusal: Refusal) -> None:
    assert "holds no text" in refusal("a.txt", " \r\n\t\n")


def test_an_unknown_encoding_is_refused_with_the_name_of_the_file(refusal: Refusal) -> None:
    assert "no such text encoding" in refusal("a.txt", "x", encoding="klingon")
