from __future__ import annotations

import pytest

from engine.reply_admission import MIN_ANSWER_TOKENS
from ui.context_budget import ContextUse, surplus_sentence

LIMIT = 8192


def use(history: int, text: int, attachments: int = 0) -> ContextUse:
    return ContextUse(history, text, attachments, 0, LIMIT)


def sentence(history: int, text: int, attachments: int = 0, most: int = LIMIT) -> str:
    return surplus_sentence(use(history, text, attachments), bool(attachments), most)


def test_what_fits_needs_no_words() -> None:
    assert sentence(LIMIT - MIN_ANSWER_TOKENS, 0) == ""


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        ((100, 10, 9000), "This does not fit: 918 tokens too many. Remove a document."),
        ((100, 9000), "This does not fit: 908 tokens too many. Shorten the message."),
        (
            (5000, 4000),
            "This does not fit: 808 tokens too many. Shorten the message or start a new conversation.",
        ),
        (
            (8190, 0),
            "The conversation is too long for the context: no room is left for an answer. "
            "Start a new conversation.",
        ),
        (
            (9000, 10),
            "The conversation is too long for the context: 818 tokens too many. Start a new conversation.",
        ),
    ],
)
def test_only_what_helps_is_proposed(tokens: tuple[int, ...], words: str) -> None:
    assert sentence(*tokens) == words


def test_a_lower_precision_is_proposed_only_where_it_holds_more() -> None:
    assert "lower KV precision" not in sentence(100, 9000)
    assert sentence(5000, 4000, most=LIMIT + 1).endswith(
        "Shorten the message, choose a lower KV precision or start a new conversation."
    )
