"""The turns of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.model import ChatMessage

Render = Callable[[Sequence[ChatMessage]], list[int]]
"""Gives the tokens of messages in a model's chat template."""

KEPT_SHARE = 0.6
"""Turns are left out until the rest takes no more than this share: it must not be due again at once."""


def turn_starts(messages: Sequence[ChatMessage]) -> list[int]:
    """Return the index of each turn's first message: a question, with all up to the next question.

    A question that was never answered is a turn of its own. A system prompt before the first question belongs
    to no turn.
    """
    return [index for index, message in enumerate(messages) if message.role == "user"]
