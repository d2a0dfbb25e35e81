from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents.cleaning import clean_text, sensible_title, tidy_text


def test_newlines_are_made_alike_and_control_characters_taken_out() -> None:
    assert clean_text("\ufeffa\r\nb\rc\x0bd\x0ce\u2028f\x85g") == "a\nb\nc\nd\ne\nf\ng"
    assert clean_text("a\x00b\x07\x1b[1m\x7f\x80c\ud800\td\uffff") == "ab[1mc�\td"


def test_unicode_is_kept_as_it_is() -> None:
    text = "ﬁ ½ e\u0301 \u00a0 \u200d 👩‍👩‍👧 عربي 中文"
    assert clean_text(text) == text


@given(st.text(st.characters()))
def test_clean_text_is_valid_and_clean_text_stays_as_it_is(text: str) -> None:
    cleaned = clean_text(text)
    assert not {unicodedata.category(char) for char in set(cleaned) - set("\t\n")} & {"Cc", "Cs"}
    assert clean_text(cleaned).removeprefix("\ufeff") == cleaned.removeprefix("\ufeff")
    cleaned.encode()


def test_prose_loses_blanks_at_line_ends_empty_lines_and_soft_hyphens() -> None:
    assert tidy_text("\n\na  b \t\n\n\n\nsoft\u00adly \r\n") == "a  b\n\nsoftly"


@pytest.mark.parametrize(
    "raw", ["Attention Is All You Need", "TCP/IP Illustrated", "C:", "Node.js", "1984", "Word"]
)
def test_titles_that_say_something_are_kept(raw: str) -> None:
    assert sensible_title(raw) == (raw if raw != "C:" else "C:")


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "",
        "  \n ",
        "--",
        "untitled",
        "Microsoft Word - report",
        "thesis.dvi",
        "/home/ada/paper",
        "C:\\Users\\ada\\paper",
        "file:///a/b",
        "\x00\x01",
    ],
)
def test_titles_that_say_nothing_are_not(raw: str | None) -> None:
    assert sensible_title(raw) is None


def test_a_title_is_one_line_of_limited_length() -> None:
    assert sensible_title(" a\r\n  b ") == "a b"
    assert len(sensible_title("x" * 5000) or "") == 200
