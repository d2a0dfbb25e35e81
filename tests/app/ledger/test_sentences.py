"""Sentences in several scripts; what they should be was written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ledger.sentences import sentences, whole_sentences, words_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is late. Go home! Why? Well…", ["It is late.", "Go home!", "Why?", "Well…"]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("It costs 3.5 euros. See section 2.1. Yes.", ["It costs 3.5 euros.", "See section 2.1.", "Yes."]),
        ("Dr. Who met J. R. Smith, e.g. in Rome. Then he left.", 2),
        ("Am 3. Mai kommt Frau Prof. Braun z. B. nach Köln. Danach nicht.", 2),
        ("We bring:\na coat", ["We bring:", "a coat"]),
        ("the file a.txt is new. it was old before.", 1),
        (
            "今日は晴れ。明日は？「雨だ。」そうですか！",
            ["今日は晴れ。", "明日は？", "「雨だ。」", "そうですか！"],
        ),
        ("كيف حالك؟ أنا بخير. شكرا", ["كيف حالك؟", "أنا بخير.", "شكرا"]),
        ("यह एक है। वह दो है।", ["यह एक है।", "वह दो है।"]),
    ],
)
def test_sentences_end_at_marks_but_not_within_numbers_or_short_forms(
    text: str, expected: list[str] | int
) -> None:
    found = sentences(text)
    assert (len(found) if isinstance(expected, int) else found) == expected


def test_lines_of_a_paragraph_are_joined_and_items_headings_rows_and_code_are_not() -> None:
    text = (
        "# Plan\nWe go by train\nand stay there.\n\nBring:\n- a coat\n  with pockets\n- shoes\n"
        "| a | b |\n| c | d |\n```\nx = 1\ny = 2\n```\nThat is all"
    )
    assert sentences(text) == [
        "# Plan",
        "We go by train and stay there.",
        "Bring:",
        "- a coat with pockets",
        "- shoes",
        "| a | b |",
        "| c | d |",
        "```",
        "x = 1",
        "y = 2",
        "```",
        "That is all",
    ]


@given(st.text())
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is done. Two is not do", "One is done."),
        ("It costs 300. It is Dr. Br", "It costs 300."),
        ("- first\n- second\n- thi", "- first\n- second"),
        ("All of it is new. The\nold one is go", "All of it is new."),
        ("Kept: all of it\n\nLost: no", "Kept: all of it"),
        ("| a | b |\n| c | d", "| a | b |"),
        ("一つ目です。二つ目は", "一つ目です。"),
        ("Nothing ends here", ""),
        ("", ""),
        ("All is whole.", "All is whole."),
    ],
)
def test_a_text_that_breaks_off_is_cut_behind_its_last_sentence(text: str, expected: str) -> None:
    assert whole_sentences(text) == expected


def test_words_are_lower_case_with_numbers_whole_and_pairs_where_there_are_no_spaces() -> None:
    assert words_of("Ärger am 12:30, 2,400.50 euro_v2!") == ["ärger", "am", "12:30", "2,400.50", "euro", "v2"]
    assert words_of("私は学生 is") == ["私は", "は学", "学生", "is"]


@pytest.mark.parametrize("piece", [".", "？", "1.", " \n", "a. "])
def test_a_hostile_text_is_split_in_a_time_that_grows_with_its_length(piece: str) -> None:
    """This would take hours if each mark looked at all that follow."""
    text = piece * 300_000
    assert len("".join(sentences(text)).replace(" ", "")) == len("".join(text.split()))
    whole_sentences(text)
