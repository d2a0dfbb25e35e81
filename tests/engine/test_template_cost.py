from __future__ import annotations

import pytest

from engine.model import ChatMessage, Model
from engine.template_cost import TemplateTokens, measure_template

QUESTION = ChatMessage("user", "Why does water boil sooner on a mountain?")
ANSWER = ChatMessage("assistant", "Because the air weighs less up there.")
SYSTEM = ChatMessage("system", "Answer in one sentence.")


def test_parts_add_up() -> None:
    cost = TemplateTokens(first=20, first_with_system=12, pair=9)
    assert cost.around(1, has_system_prompt=False) == 20
    assert cost.around(2, has_system_prompt=False) == 24
    assert cost.around(3, has_system_prompt=False) == 29
    assert cost.around(5, has_system_prompt=True) == 30
    assert cost.around(0, has_system_prompt=False) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "messages",
    [
        [QUESTION],
        [QUESTION, ANSWER, QUESTION],
        [SYSTEM, QUESTION],
        [SYSTEM, QUESTION, ANSWER, QUESTION, ANSWER, QUESTION],
    ],
)
def test_texts_and_template_are_the_rendered_prompt(starter: Model, messages: list[ChatMessage]) -> None:
    counter = starter.token_counter()
    cost = measure_template(starter, counter)
    texts = sum(counter.count(message.content) for message in messages)
    has_system_prompt = messages[0].role == "system"
    around = cost.around(len(messages) - has_system_prompt, has_system_prompt)
    assert texts + around == len(starter.render(messages))
