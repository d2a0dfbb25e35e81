"""Where the turns of a conversation begin."""

from __future__ import annotations

from engine.model import ChatMessage
from engine.turns import turn_starts

SYSTEM = ChatMessage("system", "Be brief.")
QUESTION, ANSWER = ChatMessage("user", "What is it?"), ChatMessage("assistant", "A thing.")


def test_a_turn_is_a_question_with_all_up_to_the_next() -> None:
    assert turn_starts((SYSTEM, QUESTION, QUESTION, ANSWER, QUESTION)) == [1, 2, 4]


def test_a_question_without_an_answer_is_a_turn_of_its_own() -> None:
    assert turn_starts((QUESTION, QUESTION, QUESTION)) == [0, 1, 2]


def test_what_precedes_the_first_question_is_of_no_turn() -> None:
    assert turn_starts((SYSTEM, ANSWER, QUESTION)) == [2]
    assert turn_starts((SYSTEM,)) == []
