"""Extracts of conversations and documents, with hand-written texts and any text at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.ledger.extract import extract
from app.ledger.sentences import sentences
from app.ledger.summary_request import SourcePart

CountTokens = Callable[[str], int]


def num_bytes(text: str) -> int:
    return len(text.encode())


def num_words(text: str) -> int:
    return len(text.split())


TRIP = (
    SourcePart("User", "Hello there. We want to travel to Lisbon from 12 May. What do you think of it?"),
    SourcePart(
        "Assistant",
        "That is a good idea. It is nice to travel. Hotel Tejo costs 110 euros a night. It is nice there.",
    ),
    SourcePart("User", "It is nice. We take Hotel Tejo."),
    SourcePart("Assistant", "That is a good idea. Shall I look for a train as well?"),
)


def words(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def test_an_extract_keeps_numbers_names_and_the_open_question_in_their_order() -> None:
    text = extract(TRIP, 36, num_words)
    kept = ("from 12 May.", "Hotel Tejo costs 110 euros a night.", "Shall I look for a train as well?")
    places = [text.find(sentence) for sentence in kept]
    assert -1 not in places and places == sorted(places)
    assert "It is nice to travel." not in text


def test_a_line_of_an_extract_begins_with_its_speaker() -> None:
    lines = extract(TRIP, 36, num_words).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["User", "Assistant", "Assistant"]
    assert extract([SourcePart("", "Owls hunt at night.")], 20, num_words) == "Owls hunt at night."


def test_what_was_said_before_is_not_told_again() -> None:
    parts = [
        SourcePart("", "The owl of Athens has 14 neck bones. It sleeps. The owl of Athens has 14 neck bones.")
    ]
    assert extract(parts, 100, num_words).count("14 neck bones") == 1


def test_a_question_counts_more_where_nothing_answers_it() -> None:
    question, answer = (
        SourcePart("User", "Owls sleep. Do owls sleep?"),
        SourcePart("Assistant", "Owls sleep."),
    )
    assert "Do owls sleep?" in extract([question], 6, num_words)
    assert "Do owls sleep?" not in extract([question, answer], 6, num_words)


def test_a_short_sentence_takes_the_room_in_which_a_better_one_does_not_fit() -> None:
    text = "Tejo costs 110. Douro costs 95 or 85 or 75 or 65 for all who come there. It is nice."
    assert extract([SourcePart("", text)], 7, num_words) == "Tejo costs 110. It is nice."


def test_a_heading_is_taken_after_sentences() -> None:
    text = "## Barn Owls\n\nBarn Owls hunt mice.\n\n2. Food\n\nThey eat 12 mice."
    assert extract([SourcePart("", text)], 9, num_words) == "Barn Owls hunt mice. They eat 12 mice."


def test_only_a_sentence_that_alone_is_too_long_is_cut_and_behind_a_word() -> None:
    long = "Owls " + "hunt mice and voles " * 20 + "at night."
    assert extract([SourcePart("User", long)], 8, num_words) == "Owls hunt mice and voles hunt mice and"
    assert extract([SourcePart("User", f"{long} Bats do not.")], 8, num_words).endswith("Bats do not.")
    assert extract([SourcePart("", "梟" * 50)], 12, num_bytes) == "梟" * 4


def test_sentences_of_scripts_without_spaces_follow_each_other_without_one() -> None:
    text = "会議は5月12日です。田中さんが来ます。"
    assert extract([SourcePart("", text)], 200, num_bytes) == text


def test_an_extract_of_nothing_is_empty() -> None:
    assert extract([], 100, num_words) == extract([SourcePart("User", " \n")], 100, num_words) == ""


speakers = st.sampled_from(["", "User", "Assistant", "paper.pdf"])
any_parts = st.lists(st.builds(SourcePart, speakers, st.text()), max_size=4)
prose = st.lists(
    st.sampled_from(
        ["Owls", "hunt", "12", "mice.", "Why?", "\n\n", "- ", "3.5", "夜。", "“Tejo”", "Dr.", "عام؟"]
    )
).map(" ".join)
prose_parts = st.lists(st.builds(SourcePart, speakers, prose), max_size=4)


@pytest.mark.parametrize("count", [num_bytes, num_words, len])
@given(parts=any_parts | prose_parts, most_tokens=st.integers(8, 200))
@example(parts=[SourcePart("User", "\U0001f9d1‍\U0001f680" * 9)], most_tokens=8)
def test_any_extract_fits_is_not_empty_and_consists_of_sentences_of_its_source(
    count: CountTokens, parts: list[SourcePart], most_tokens: int
) -> None:
    text = extract(parts, most_tokens, count)
    assert count(text) <= most_tokens
    found = [sentence for part in parts for sentence in sentences(part.text)]
    assert bool(text) == bool(found)
    if any(count(sentence) <= most_tokens for sentence in found):
        source = {(part.speaker, words(sentence)) for part in parts for sentence in sentences(part.text)}
        for line in text.splitlines():
            assert is_made_of(words(line), source)
    elif found:
        assert any(sentence.startswith(text) for sentence in found)
    assert extract(parts, most_tokens, count) == text


def is_made_of(line: str, source: set[tuple[str, str]]) -> bool:
    """Whether a line is whole sentences of one speaker, behind the speaker or not."""
    for speaker in {speaker for speaker, _ in source}:
        own = {sentence for name, sentence in source if name == speaker}
        marked = f"{words(speaker)}:" if speaker else ""
        reached = {0, len(marked)} if line.startswith(marked) else {0}
        for start in range(len(line)):
            if start in reached:
                reached |= {start + len(each) for each in own if line.startswith(each, start)}
        if len(line) in reached:
            return True
    return False
