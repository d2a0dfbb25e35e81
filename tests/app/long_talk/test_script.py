from __future__ import annotations

from app.long_talk.facts import Fact
from app.long_talk.script import HANDED_OVER, OPEN_QUESTIONS, script

FACTS = (
    Fact((0,), "It is 12 of them.", "12"),
    Fact((0, 1), "It is Bob who.", "Bob"),
    Fact((1,), "Oh 9.", "9"),
)


def test_every_fourth_turn_hands_over_an_excerpt_and_the_next_ask_for_its_facts() -> None:
    steps = list(script(2, FACTS, 8))
    assert [step.excerpt for step in steps] == [0, None, None, None, 1, None, None, None]
    assert [step.fact for step in steps] == [None, FACTS[0], FACTS[1], None, None, FACTS[2], None, None]
    for step in steps:
        expected = HANDED_OVER if step.excerpt is not None else step.fact.question if step.fact else None
        assert step.question == expected or step.question in OPEN_QUESTIONS


def test_a_conversation_goes_on_when_the_document_is_at_its_end() -> None:
    steps = list(script(1, (), 7))
    assert len(steps) == 7
    assert [step.excerpt for step in steps] == [0, *[None] * 6]
    assert {step.question for step in steps[1:]} == set(OPEN_QUESTIONS)
