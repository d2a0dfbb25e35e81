"""Which notes a segment supports."""

from __future__ import annotations

import pytest

from app.segments.note_check import is_supported, without_echo

SEGMENT = (
    "The mill at Harrowgate was built in 1,873 by Edith Marlow. Its wheel has 48 paddles, each 2.5 m long. "
    "It ground wheat until the flood."
)


@pytest.mark.parametrize(
    "note",
    [
        "The mill was built in 1873 by Edith Marlow.",
        "1. The wheel has 48 paddles.\n2. Each paddle is 2.5 m long.",
        "- Edith Marlow built it.",
    ],
)
def test_what_the_segment_says_is_supported(note: str) -> None:
    assert is_supported(note, SEGMENT)


@pytest.mark.parametrize(
    "note",
    [
        "The mill was built in 1874 by Edith Marlow.",
        "The mill was built by Edith Harper.",
        "The mill that Tom Reed visited has 48 paddles.",
        "The segment does not say who visited it.",
        "The document is about many things.",
        "The mill was built. " * 12,
    ],
)
def test_other_numbers_and_names_what_says_nothing_and_circles_are_not(note: str) -> None:
    assert not is_supported(note, SEGMENT)


def test_sentences_that_repeat_what_was_asked_are_no_note() -> None:
    prompt = "Question: Who built it?\n\nCopy the sentences that answer the question. Write nothing else."
    assert without_echo("Write nothing else. Edith Marlow built it.", prompt) == "Edith Marlow built it."
    assert without_echo("Question: Who built it?\n\nWrite nothing else.", prompt) == ""
    assert without_echo("Edith Marlow\nbuilt it.", prompt) == "Edith Marlow\nbuilt it."
