from __future__ import annotations

import pytest

from app.store.titles import MAX_TITLE_CHARS, title_of


@pytest.mark.parametrize(
    ("text", "fallback", "title"),
    [
        ("Hello", None, "Hello"),
        ("\n\t\n  Hello,   you \nthere", "A file", "Hello, you"),
        ("", "A  file", "A file"),
        ("  \n", None, "New conversation"),
        ("", "", "New conversation"),
        ("x" * 60, None, "x" * 60),
        ("word " * 20, None, "word word word word word word word word word word word word…"),
        ("This sentence ends in a comma just where the title is cut, or so", None,
         "This sentence ends in a comma just where the title is cut…"),
        ("漢" * 80, None, "漢" * 60 + "…"),
        ("a " + "b" * 100, None, "a " + "b" * 58 + "…"),
    ],
)  # fmt: skip
def test_a_title_is_the_first_line_that_has_words(text: str, fallback: str | None, title: str) -> None:
    assert title_of(text, fallback) == title


@pytest.mark.parametrize("cluster", ["e\u0301", "👩‍🚀", "❤️", "👩‍👩‍👧"])
def test_a_cut_never_splits_what_is_read_as_one_character(cluster: str) -> None:
    for offset in range(len(cluster)):
        title = title_of("x" * offset + cluster * 60, None)
        assert len(title) <= MAX_TITLE_CHARS + 1
        assert (len(title) - 1 - offset) % len(cluster) == 0
