"""What is asked about parts of documents, and what counts as a note."""

from __future__ import annotations

import pytest

from app.segments.prompts import (
    join_prompt,
    note_of,
    notes_text,
    nothing_found_sentence,
    question_or_default,
    segment_prompt,
)


@pytest.mark.parametrize(
    "written",
    [
        "",
        "  \n",
        "NOTHING",
        "NOTHING.",
        "**NOTHING**",
        "Nothing",
        "nothing.\n",
        "NOTHING in this part.",
        "...",
    ],
)
def test_a_model_that_found_nothing_wrote_no_note(written: str) -> None:
    assert note_of(written) == ""
    assert note_of(f"<think>The part is about bats.</think>\n\n{written}") == ""


@pytest.mark.parametrize("written", ["Owls hunt.", "Nothing hunts like an owl.", "- owls: NOTHING but mice"])
def test_other_words_are_a_note(written: str) -> None:
    assert note_of(f" {written}\n") == written
    assert note_of(f"<think>Owls?\n\nYes.</think>\n{written}") == written


def test_reasoning_that_never_ended_is_no_note() -> None:
    assert note_of("<think>The owl might") == ""


def test_prompts_carry_texts_as_they_are() -> None:
    """Dollar signs and braces of a document are not the template's."""
    odd = "It costs $5 {a} $text ${number} \\1 %s"
    for prompt in (
        segment_prompt("T", odd, 2, 3, "Q"),
        segment_prompt(odd, "x", 2, 3, "Q"),
        segment_prompt("T", "x", 2, 3, odd),
        join_prompt("T", odd, "Q"),
        notes_text("T", 3, odd),
        nothing_found_sentence([odd], 3),
    ):
        assert odd in prompt
    assert "part 2 of 3" in segment_prompt("T", "x", 2, 3, "Q")


def test_a_document_without_notes_says_so() -> None:
    assert "None of the parts says anything" in notes_text("T", 3, "")
    assert "None of the parts" not in notes_text("T", 3, "Part 1: owls")


def test_a_missing_question_asks_what_the_document_says() -> None:
    assert question_or_default("") == "What is this document about, and what does it say?"
    assert question_or_default("Why?") == "Why?"
