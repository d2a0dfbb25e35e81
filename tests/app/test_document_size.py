"""How large documents are."""

from __future__ import annotations

import pytest

from app.document_size import about_tokens, num_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("One, two; three.", 3),
        ("Don't re-read 3 pages", 4),
        ("Żółć i Ελληνικά и русский", 5),
        ("鸟在飞。", 3),
        ("カラスは black 鳥", 6),
        ("مرحبا بالعالم", 2),
    ],
)
def test_words_are_counted_as_people_count_them(text: str, words: int) -> None:
    assert num_words(text) == words


def test_a_long_text_is_counted_by_stretches_from_all_of_it() -> None:
    text = "a" * 3_000_000 + "b " * 1_500_000
    counted: list[int] = []

    def count(part: str) -> int:
        counted.append(len(part))
        return part.count("a") + 2 * part.count("b")

    assert about_tokens(text, count) == pytest.approx(6_000_000, rel=0.02)
    assert sum(counted) < len(text) / 10


def test_a_short_text_is_counted_exactly() -> None:
    assert about_tokens("abc" * 100_000, len) == 300_000
