"""What is told before rows of the context are restored."""

from __future__ import annotations

import dataclasses

import pytest

from app.ledger.planning import ContextRoom
from app.profiles import Overflow
from ui.inspector.context.restoring import again_sentence, along_sentence, cost_sentence

ROOM = ContextRoom(
    num_tokens=900,
    limit_tokens=1_024,
    fitting_tokens=1_024,
    answer_tokens=200,
    due_tokens=824,
    kept_tokens=600,
    prepare_tokens=600,
)


@pytest.mark.parametrize(
    ("tokens", "speed", "words"),
    [
        (None, None, "What is restored is read with the next message."),
        (0, None, "Restoring costs nothing: it comes back with the next message, without being read."),
        (1, None, "With it the next message reads 1 token more."),
        (1_204, 240.8, "With it the next message reads 1,204 tokens more, about 5 s."),
    ],
)
def test_the_cost_is_what_has_to_be_read(tokens: int | None, speed: float | None, words: str) -> None:
    assert cost_sentence(tokens, speed).replace("\N{NO-BREAK SPACE}", " ") == words


def test_turns_that_come_back_with_those_that_were_chosen_are_told() -> None:
    assert along_sentence(0) == ""
    assert along_sentence(1).startswith("1 other turn comes back, too")
    assert along_sentence(4).startswith("4 other turns come back, too")


@pytest.mark.parametrize("overflow", Overflow)
def test_a_context_that_becomes_too_full_is_told_by_what_the_profile_does_then(overflow: Overflow) -> None:
    words = again_sentence(dataclasses.replace(ROOM, num_tokens=1_010), overflow)
    assert words.startswith("The context then has about 1,010 tokens")
    assert ("What you pin stays" in words) is (overflow is not Overflow.OFF)
    assert ("summarized again" in words) is (overflow is Overflow.SUMMARIZE)
    assert again_sentence(dataclasses.replace(ROOM, num_tokens=800), overflow) == ""


def test_a_context_that_is_to_be_trimmed_though_it_fits_is_told_but_where_nothing_is_done() -> None:
    assert again_sentence(ROOM, Overflow.DROP) and not again_sentence(ROOM, Overflow.OFF)
