"""Extracts of conversations and documents, with hand-written texts and any text at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.ledger.extract import extract
from app.ledger.sentences import sentences
from app.ledger.summary_request import PartKind, SourcePart

CountTokens = Callable[[str], int]


def num_bytes(text: str) -> int:
    return len(text.encode())


def num_words(text: str) -> int:
    return len(text.split())


def user(text: str) -> SourcePart:
    return SourcePart("User", text, PartKind.USER)


def answer(text: str) -> SourcePart:
    return SourcePart("Assistant", text, PartKind.ANSWER)


def document(text: str) -> SourcePart:
    return SourcePart("", text, PartKind.DOCUMENT)


def earlier(speaker: str, text: str) -> SourcePart:
    return SourcePart(speaker, text, PartKind.EARLIER)


TRIP = (
    user("Hello there. We want to travel to Lisbon from 12 May. What do you think of it?"),
    answer(
        "That is a good idea. It is nice to travel. Hotel Tejo costs 110 euros a night. It is nice there.",
    ),
    user("It is nice. We take Hotel Tejo."),
    answer("That is a good idea. Shall I look for a train as well?"),
)


def words(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())


def test_an_extract_keeps_what_the_user_says_and_numbers_and_names_of_answers_in_their_order() -> None:
    text = extract(TRIP, 36, num_words)
    kept = ("from 12 May.", "Hotel Tejo costs 110 euros a night.", "We take Hotel Tejo.")
    places = [text.find(sentence) for sentence in kept]
    assert -1 not in places and places == sorted(places)
    assert "It is nice to travel." not in text


def test_what_the_user_states_comes_before_the_pleasantries_of_an_answer() -> None:
    parts = (
        user("My dog is called Bramble and he was born on 14 May 2019. Say hello to him."),
        answer(
            "Hello, there you are, dear friend! Bramble is a playful dog, the star of Labrador. What brings "
            "you to our little corner of the internet?"
        ),
    )
    text = extract(parts, 24, num_words)
    assert "My dog is called Bramble and he was born on 14 May 2019." in text
    assert "corner" not in text


def test_what_the_user_states_without_a_number_comes_before_what_is_only_asked() -> None:
    own, asked_for = "We do not eat meat.", "Describe seas and islands."
    for words in (f"{asked_for} {own}", f"{own} {asked_for}"):
        assert extract([user(words)], 6, num_words) == f"User: {own}"


def test_a_question_of_an_answer_is_not_open() -> None:
    parts = (user("Anna pays 730 euros in Lisbon."), answer("So nice! May I ask where we meet?"))
    assert extract(parts, 8, num_words) == "User: Anna pays 730 euros in Lisbon."


def test_a_sentence_that_only_begins_what_follows_is_taken_last() -> None:
    parts = [
        document("These are fascinating details about bicycles of history:\n\nSmeath built wheels in Ayr.")
    ]
    assert extract(parts, 9, num_words) == "Smeath built wheels in Ayr."


def test_a_line_of_an_extract_begins_with_its_speaker() -> None:
    lines = extract(TRIP, 36, num_words).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["User", "Assistant", "User"]
    assert extract([document("Owls hunt at night.")], 20, num_words) == "Owls hunt at night."


def test_what_was_left_out_within_a_line_is_marked_and_stays_so() -> None:
    once = extract([user("I paid 730 euros. It is so. I leave on 3 June.")], 11, num_words)
    assert once == "User: I paid 730 euros. … I leave on 3 June."
    parts = [earlier("User", once.removeprefix("User: "))]
    assert extract(parts, 11, num_words) == once
    assert extract(parts, 20, num_words) == once
    assert extract(parts, 2, num_words) == "I leave"


EARLIER = (
    earlier("User", "My budget is 730 euros."),
    earlier("User", "Anna Smeath lives in Lisbon."),
)
NEWEST = (
    user("I go to Rome on 5 July 2021. I see Paul and Mary of York. I take bus 17 at 9:30 to Ostia."),
    answer("Rome is old."),
)


def test_an_earlier_summary_keeps_its_share_beside_what_is_newest() -> None:
    """Its sentences have fewer facts than each of the newest turn: they stand for many turns."""
    text = extract((*EARLIER, *NEWEST), 24, num_words, earlier_share=0.5)
    assert "730" in text and "Smeath" in text and "5 July 2021" in text
    without = extract((*EARLIER, *NEWEST), 24, num_words)
    assert "730" not in without and "Smeath" not in without


def test_room_that_an_earlier_summary_does_not_need_is_for_the_rest() -> None:
    text = extract((*EARLIER[:1], *NEWEST), 24, num_words, earlier_share=0.5)
    assert "730" in text and "5 July 2021" in text and "9:30" in text


def test_of_an_earlier_summary_the_least_informative_goes_first() -> None:
    parts = (earlier("User", "Tell me a story."), *EARLIER, *NEWEST)
    text = extract(parts, 24, num_words, earlier_share=0.5)
    assert "730" in text and "Smeath" in text and "story" not in text


def test_what_was_said_before_is_not_told_again() -> None:
    parts = [document("The owl of Athens has 14 neck bones. It sleeps. The owl of Athens has 14 neck bones.")]
    assert extract(parts, 100, num_words).count("14 neck bones") == 1


def test_a_question_counts_more_where_nothing_answers_it() -> None:
    question, answered = user("Owls sleep. Do owls sleep?"), answer("Owls sleep.")
    assert "Do owls sleep?" in extract([question], 6, num_words)
    assert "Do owls sleep?" not in extract([question, answered], 6, num_words)


def test_a_short_sentence_takes_the_room_in_which_a_better_one_does_not_fit() -> None:
    text = "Tejo costs 110. Douro costs 95 or 85 or 75 or 65 for all who come there. It is nice."
    assert extract([document(text)], 8, num_words) == "Tejo costs 110. … It is nice."


def test_a_heading_is_taken_after_sentences() -> None:
    text = "## Barn Owls\n\nBarn Owls hunt mice.\n\n2. Food\n\nThey eat 12 mice."
    assert extract([document(text)], 9, num_words) == "Barn Owls hunt mice. … They eat 12 mice."


def test_only_a_sentence_that_alone_is_too_long_is_cut_and_behind_a_word() -> None:
    long = "Owls " + "hunt mice and voles " * 20 + "at night."
    assert extract([user(long)], 8, num_words) == "Owls hunt mice and voles hunt mice and"
    assert extract([user(f"{long} Bats do not.")], 8, num_words).endswith("Bats do not.")
    assert extract([document("梟" * 50)], 12, num_bytes) == "梟" * 4


def test_sentences_of_scripts_without_spaces_follow_each_other_without_one() -> None:
    text = "会議は5月12日です。田中さんが来ます。"
    assert extract([document(text)], 200, num_bytes) == text


def test_an_extract_of_nothing_is_empty() -> None:
    assert extract([], 100, num_words) == extract([user(" \n")], 100, num_words) == ""


speakers = st.sampled_from(["", "User", "Assistant", "paper.pdf"])
kinds = st.sampled_from(PartKind)
any_parts = st.lists(st.builds(SourcePart, speakers, st.text(), kinds), max_size=4)
prose = st.lists(
    st.sampled_from(
        ["Owls", "hunt", "12", "mice.", "Why?", "\n\n", "- ", "3.5", "夜。", "“Tejo”", "Dr.", "عام؟"]
    )
).map(" ".join)
prose_parts = st.lists(st.builds(SourcePart, speakers, prose, kinds), max_size=4)


@pytest.mark.parametrize("count", [num_bytes, num_words, len])
@given(parts=any_parts | prose_parts, most_tokens=st.integers(8, 200))
@example(parts=[user("\U0001f9d1‍\U0001f680" * 9)], most_tokens=8)
def test_any_extract_fits_is_not_empty_and_consists_of_sentences_of_its_source(
    count: CountTokens, parts: list[SourcePart], most_tokens: int
) -> None:
    text = extract(parts, most_tokens, count)
    assert count(text) <= most_tokens
    found = [each for part in parts for each in sentences(part.text) if each != "…"]
    assert bool(text) == bool(found)
    if any(count(sentence) <= most_tokens for sentence in found):
        source = {(part.speaker, words(sentence)) for part in parts for sentence in sentences(part.text)}
        for line in text.splitlines():
            assert is_made_of(words(line), source)
    elif found:
        assert any(sentence.startswith(text) for sentence in found)
    assert extract(parts, most_tokens, count) == text


def is_made_of(line: str, source: set[tuple[str, str]]) -> bool:
    """Whether a line is whole sentences of one speaker and gaps, behind the speaker or not."""
    for speaker in {speaker for speaker, _ in source}:
        own = {sentence for name, sentence in source if name == speaker} | {"…"}
        marked = f"{words(speaker)}:" if speaker else ""
        reached = {0, len(marked)} if line.startswith(marked) else {0}
        for start in range(len(line)):
            if start in reached:
                reached |= {start + len(each) for each in own if line.startswith(each, start)}
        if len(line) in reached:
            return True
    return False
