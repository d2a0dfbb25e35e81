"""What is asked about segments of documents, and what counts as a note."""

from __future__ import annotations

import pytest

from app.reading.coverage import coverage_sentence
from app.segments.prompts import (
    join_prompt,
    note_again_prompt,
    note_of,
    notes_text,
    nothing_found_sentence,
    passages_text,
    question_or_default,
    segment_passage,
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
        "NOTHING in this segment.",
        "...",
    ],
)
def test_a_model_that_found_nothing_wrote_no_note(written: str) -> None:
    assert note_of(written) == ""
    assert note_of(f"<think>The segment is about bats.</think>\n\n{written}") == ""


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
        segment_passage("T", "", odd).text,
        segment_passage(odd, "p. 1", "x").text,
        segment_prompt(odd),
        note_again_prompt(odd),
        join_prompt("T", odd, "Q"),
        notes_text("T", "All.", odd),
        passages_text("T", odd),
        nothing_found_sentence([odd]),
    ):
        assert odd in prompt


def test_a_segment_is_written_the_same_for_every_question_and_says_where_it_stands() -> None:
    written = segment_passage("Owls", "p. 12, 3.2 Methods", "They hunt.").text
    assert written.startswith("Segment of the document “Owls” (p. 12, 3.2 Methods):\n\nThey hunt.")
    assert segment_passage("Owls", "", "They hunt.").text.startswith("Segment of the document “Owls”:")


def test_a_document_without_notes_or_passages_says_so() -> None:
    assert "None of them says anything" in notes_text("T", "It was read in 3 segments.", "")
    assert "None of them" not in notes_text("T", "It was read in 3 segments.", "[1] owls")
    assert "no passage has them" in passages_text("T", "")
    assert "[7]" in passages_text("T", "[7] Owls.", 7)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((1, 0, 1), "It was read in 1 segment."),
        ((34, 0, 34), "It was read in 34 segments."),
        ((30, 0, 34), "30 of its 34 segments were read; 4 were not read."),
        ((30, 1, 34), "30 of its 34 segments were read; 1 could not be read and 3 were not read."),
        ((2, 1, 4), "2 of its 4 segments were read; 1 could not be read and 1 was not read."),
    ],
)
def test_the_coverage_is_said_in_a_sentence(counts: tuple[int, int, int], sentence: str) -> None:
    assert coverage_sentence(*counts) == sentence


def test_a_missing_question_asks_what_the_document_says() -> None:
    assert question_or_default("") == "What is this document about, and what does it say?"
    assert question_or_default("Why?") == "Why?"
