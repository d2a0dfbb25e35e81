"""Which turns are left out, and which tokens those are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import ChatMessage
from engine.turns import (
    PROBE_TOKENS,
    TurnTrimmer,
    common_prefix,
    removed_stretch,
    skipped_stretch,
    turn_starts,
    turns_beyond,
    without_oldest,
)

SYSTEM = ChatMessage("system", "Be brief.")
TURNS = tuple(
    ChatMessage(role, letter * 10)
    for letter in "abcd"
    for role in ("user", "assistant")  # type: ignore[arg-type]
)
LAST = ChatMessage("user", "last")


def render(messages: Sequence[ChatMessage]) -> list[int]:
    return [ord(c) for message in messages for c in f"<{message.role[0]}>{message.content}"]


def test_a_turn_is_a_question_with_all_up_to_the_next() -> None:
    two_questions = (SYSTEM, LAST, LAST, TURNS[1], LAST)
    assert turn_starts(two_questions) == [1, 4]
    assert without_oldest(two_questions, 1) == (SYSTEM, LAST)


def test_the_system_prompt_and_the_last_question_always_stay() -> None:
    assert without_oldest((SYSTEM, *TURNS, LAST), 99) == (SYSTEM, LAST)
    assert turns_beyond(render, (SYSTEM, *TURNS, LAST), 0) == 4


@pytest.mark.parametrize("most_tokens", range(0, 140, 7))
def test_as_few_turns_go_as_have_to(most_tokens: int) -> None:
    messages = (SYSTEM, *TURNS, LAST)
    fitting = [n for n in range(5) if len(render(without_oldest(messages, n))) <= most_tokens]
    assert turns_beyond(render, messages, most_tokens) == min(fitting, default=4)


@given(st.lists(st.integers(0, 2), max_size=30), st.integers(0, 30), st.integers(1, 30))
def test_a_stretch_that_was_taken_out_is_found(tokens: list[int], start: int, length: int) -> None:
    rest = tokens[:start] + tokens[start + length :]
    found = removed_stretch(tokens, rest)
    if len(rest) == len(tokens):
        assert found is None
    else:
        assert found is not None
        assert tokens[: found[0]] + tokens[found[1] :] == rest


def test_of_a_text_that_is_there_twice_the_later_one_stays() -> None:
    assert removed_stretch([1, 7, 8, 3, 7, 8], [1, 7, 8]) == (1, 4)


def test_more_than_one_stretch_is_none() -> None:
    assert removed_stretch([1, 2, 3, 4, 5], [1, 3, 5]) is None
    assert removed_stretch([1, 2], [1, 2, 3]) is None


def test_a_cut_leaves_what_the_template_writes_without_the_turns() -> None:
    messages = (SYSTEM, *TURNS, LAST)
    trimmer, prompt = TurnTrimmer(render, messages), render(messages)
    cut = trimmer.cut(prompt)
    assert cut is not None and cut.num_turns == 2
    rest = prompt[: cut.start] + prompt[cut.stop :]
    assert rest == render((SYSTEM, *TURNS[4:], LAST))
    again = trimmer.cut(rest)
    assert again is not None and again.num_turns == 2  # one turn fewer would leave 45 of 71 tokens


def test_a_template_that_rewrites_what_stays_gives_no_cut() -> None:
    def numbered(messages: Sequence[ChatMessage]) -> list[int]:
        return [n + ord(c) for n, message in enumerate(messages) for c in message.content]

    assert TurnTrimmer(numbered, (*TURNS, LAST)).cut(numbered((*TURNS, LAST))) is None


def test_what_is_held_of_left_out_turns_is_found_behind_the_common_prefix() -> None:
    held = render((SYSTEM, *TURNS))
    wanted = render((SYSTEM, *TURNS[4:], LAST))
    stretch = skipped_stretch(held, wanted)
    assert stretch is not None
    rest = held[: stretch[0]] + held[stretch[1] :]
    assert wanted[: len(rest)] == rest


def test_a_text_that_agrees_nowhere_or_too_shortly_is_not_found() -> None:
    held = list(range(100))
    assert skipped_stretch(held, [0, 1, *range(500, 540)]) is None
    assert skipped_stretch(held, [0, 1, *range(100 - PROBE_TOKENS + 1, 100)]) is None
    assert skipped_stretch(held, held) is None


def test_the_common_prefix_ends_at_the_first_difference() -> None:
    held = [1, 2, 3]
    assert common_prefix(held, [1, 2, 3, 4]) == 3
    assert common_prefix(held, [1, 2]) == 2
    assert common_prefix(held, [1, 9, 3]) == 1
    assert common_prefix(held, []) == 0
