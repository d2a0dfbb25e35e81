"""Segments of texts: where they end, and that nothing of the text is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.segments import splitting
from app.segments.splitting import CountTokens, TableHeads

SENTENCE = "The owl that lives in the old barn hunts at night. "
PARAGRAPH = SENTENCE * 4


def split_text(text: str, most_tokens: int, count: CountTokens, kind: str = "markdown") -> list[str]:
    """Return the words of the segments."""
    return [text[start:stop] for start, stop in splitting.split_text(text, most_tokens, count, kind)]


def words(text: str) -> int:
    """Count as a tokenizer would whose tokens are words."""
    return len(text.split())


def characters(text: str) -> int:
    return len(text)


def melting(text: str) -> int:
    """Count so that texts take more tokens together than one by one."""
    return len(text.split()) + max(0, text.count(".") - 1) * 2


def packed(text: str) -> str:
    return re.sub(r"\s", "", text)


pieces = st.one_of(
    st.text(alphabet="ab .\n|#é。", max_size=30),
    st.sampled_from(
        ["# Heading\n", "\n\n", SENTENCE, "| a | b |\n", "1.2 Results\n", "x" * 40, "雪が降る。"]
    ),
)
texts = st.lists(pieces, max_size=40).map("".join)


@given(text=texts, most=st.integers(3, 60), count=st.sampled_from([words, characters, melting]))
def test_segments_are_short_enough_and_lose_nothing(text: str, most: int, count: object) -> None:
    assert callable(count)
    segments = split_text(text, most, count)
    assert packed("".join(segments)) == packed(text)
    assert all(count(segment) <= most for segment in segments)
    assert all(segment == segment.strip() != "" for segment in segments)


@given(text=texts, most=st.integers(40, 80))
def test_words_that_fit_are_never_cut(text: str, most: int) -> None:
    """In writing that has spaces; Chinese and Japanese sentences end without one."""
    text = text.replace("。", "")
    if max(map(len, text.split()), default=0) <= most:
        segments = split_text(text, most, characters)
        assert [word for segment in segments for word in segment.split()] == text.split()


def test_a_text_that_fits_is_one_segment() -> None:
    text = f"# Owls\n\n{PARAGRAPH}\n\n# Bats\n\n{PARAGRAPH}"
    assert split_text(text, words(text), words) == [text.strip()]


@pytest.mark.parametrize("heading", ["## Bats", "2. Bats", "2.1 Bats in winter", "Chapter Two"])
def test_headings_are_the_first_choice(heading: str) -> None:
    """The second section has paragraphs that would still fit behind the first."""
    first, second = f"# Owls\n\n{PARAGRAPH}\n\n{PARAGRAPH}", f"{heading}\n\n{PARAGRAPH}\n\n{PARAGRAPH}"
    assert split_text(f"{first}\n\n{second}", 130, words) == [first.strip(), second.strip()]


def test_blank_lines_come_before_sentences() -> None:
    paragraphs = [f"Number {number}. {PARAGRAPH}".strip() for number in range(4)]
    assert split_text("\n\n".join(paragraphs), 100, words) == [
        "\n\n".join(paragraphs[:2]),
        "\n\n".join(paragraphs[2:]),
    ]


def test_sentences_come_before_words() -> None:
    assert split_text(SENTENCE * 9, 3 * words(SENTENCE) + 5, words) == [(SENTENCE * 3).strip()] * 3


def test_lines_come_before_words_where_there_are_no_sentences() -> None:
    line = "let owl = barn at night\n"
    assert split_text(line * 6, 2 * words(line) + 3, words) == [(line * 2).strip()] * 3


def test_words_are_the_last_choice() -> None:
    assert split_text("owl " * 10, 4, words) == ["owl owl owl owl", "owl owl owl owl", "owl owl"]


def test_a_word_that_is_too_long_alone_is_cut() -> None:
    segments = split_text("a " + "x" * 25, 10, characters)
    assert packed("".join(segments)) == "a" + "x" * 25
    assert max(map(len, segments)) <= 10


def test_rows_of_a_table_stay_whole() -> None:
    rows = [f"| {number} | an owl. And a bat. |" for number in range(20)]
    text = f"Before the table. It follows.\n\n{chr(10).join(rows)}\n\nAfter it. " + SENTENCE * 3
    segments = split_text(text, 35, words)
    assert len(segments) > 4
    lines = [line for segment in segments for line in segment.split("\n")]
    assert [line for line in lines if line.startswith("|")] == rows


def test_segments_are_filled_at_least_half() -> None:
    text = "\n\n".join(PARAGRAPH if number % 2 else SENTENCE for number in range(30))
    counts = [words(segment) for segment in split_text(text, 60, words)]
    assert all(2 * count >= 60 - words(SENTENCE) for count in counts[:-1])


def test_segments_are_counted_whole_and_not_piece_by_piece() -> None:
    segments = split_text("The owl that lives in the old barn hunts at night. ....", 9, melting)
    assert max(map(melting, segments)) <= 9


def test_white_space_around_a_segment_takes_no_room() -> None:
    assert split_text("x" * 10 + " " + "y" * 9, 10, characters) == ["x" * 10, "y" * 9]


def test_nothing_is_no_segment() -> None:
    assert split_text("", 10, words) == split_text(" \n\n ", 10, words) == []


TABLE = "| Pump | Bar |\n| :-- | --: |\n" + "".join(f"| P-{row} | {row * 2} |\n" for row in range(30))


def test_the_head_of_a_table_is_known_where_its_rows_go_on_and_has_room() -> None:
    text = f"Pumps and their pressure.\n\n{TABLE}\nAfter it."
    heads = TableHeads(text, 100)
    segments = splitting.split_text(text, 60, words)
    assert len(segments) > 3
    head = "| Pump | Bar |\n| :-- | --: |\n"
    inside = [heads.before(start) for start, _ in segments]
    assert inside[0] == "" and set(inside[1:]) == {head}
    for start, stop in segments:
        assert words(heads.before(start) + text[start:stop]) <= 60
    assert TableHeads(text, 20).before(segments[1][0]) == ""


def test_code_is_cut_before_what_is_not_indented() -> None:
    one = "def hunt(owl):\n    # Look.\n    see(owl)\n\n    return fly(owl)\n"
    text = "\n\n".join([one, one, one])
    assert split_text(text, 2 * words(one) + 3, words, "code") == [f"{one}\n\n{one}".strip(), one.strip()]


@pytest.mark.parametrize("short", ["Dr. Owl", "No. 7 and 8", "e.g. Owls", "in 3.5 m height"])
def test_a_full_stop_that_ends_no_sentence_is_no_place_to_cut(short: str) -> None:
    text = f"It was written by {short} in the barn at night."
    segments = split_text(f"{text} {text}", words(text) + 4, words)
    assert segments == [text, text]


def test_sentences_of_chinese_are_the_place_to_cut() -> None:
    sentence = "猫头鹰住在旧谷仓里，它在夜里捕猎。"
    assert split_text(sentence * 4, 2 * len(sentence) + 5, characters) == [sentence * 2] * 2


def test_a_word_of_other_letters_within_chinese_is_not_cut() -> None:
    text = "猫头鹰" * 5 + "Bundesverfassungsgericht" + "猫头鹰" * 5
    segments = split_text(text, 30, characters)
    assert sum("Bundesverfassungsgericht" in segment for segment in segments) == 1


@pytest.mark.parametrize(
    ("text", "most_times"),
    [(SENTENCE * 8000, 4), ("owl " * 100_000, 4), (f"{PARAGRAPH}\n\n" * 2000, 4), ("x" * 400_000, 16)],
)
def test_a_long_text_is_counted_a_few_times_however_little_there_is_to_cut_at(
    text: str, most_times: int
) -> None:
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return len(part) // 4 + 1

    assert len(split_text(text, 1000, count)) > 90
    assert counted <= most_times * len(text)
