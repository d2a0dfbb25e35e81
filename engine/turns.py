"""Leaving the oldest turns out of what a model reads, and finding what that takes out of its tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.model import ChatMessage

Render = Callable[[Sequence[ChatMessage]], list[int]]
"""Gives the tokens of messages in a model's chat template."""

KEPT_SHARE = 0.6
"""Turns are left out until the rest takes no more than this share: it must not be due again at once."""
PROBE_TOKENS = 16
"""So many tokens have to agree before what a cache holds counts as the same text further on."""


def turn_starts(messages: Sequence[ChatMessage]) -> list[int]:
    """Return the index of each turn's first message: a question, with all up to the next question.

    A system prompt before the first question belongs to no turn.
    """
    return [
        index
        for index, message in enumerate(messages)
        if message.role == "user" and (index == 0 or messages[index - 1].role != "user")
    ]


def without_turns(messages: Sequence[ChatMessage], num_turns: int) -> tuple[ChatMessage, ...]:
    """Return the messages without so many of the oldest turns, at most all; what precedes the first stays."""
    starts = turn_starts(messages)
    if num_turns <= 0 or not starts:
        return tuple(messages)
    stop = starts[num_turns] if num_turns < len(starts) else len(messages)
    return (*messages[: starts[0]], *messages[stop:])


def without_oldest(messages: Sequence[ChatMessage], num_turns: int) -> tuple[ChatMessage, ...]:
    """Return the same, but for the last turn, which always stays."""
    return without_turns(messages, min(num_turns, len(turn_starts(messages)) - 1))


def turns_beyond(render: Render, messages: Sequence[ChatMessage], most_tokens: int) -> int:
    """Return how many of the oldest turns to leave out for the rest to take at most so many tokens.

    The last turn always stays, even where it alone takes more.
    """
    fewest, most = 0, max(0, len(turn_starts(messages)) - 1)
    while fewest < most:
        middle = (fewest + most) // 2
        if len(render(without_oldest(messages, middle))) <= most_tokens:
            most = middle
        else:
            fewest = middle + 1
    return most


def removed_stretch(whole: Sequence[int], rest: Sequence[int]) -> tuple[int, int] | None:
    """Return the stretch of `whole` without which it is `rest`, None where there is no such stretch."""
    start = common_prefix(whole, rest)
    stop = start + len(whole) - len(rest)
    if stop <= start or list(whole[stop:]) != list(rest[start:]):
        return None
    return _earliest(whole, start, stop)


def skipped_stretch(held: Sequence[int], wanted: Sequence[int]) -> tuple[int, int] | None:
    """Return the stretch to take out of `held` for the rest of it to begin as `wanted` goes on there.

    That is after their common prefix. Of several places the one where they agree for longest; None where they
    agree nowhere.
    """
    start = common_prefix(held, wanted)
    probe = wanted[start : start + PROBE_TOKENS]
    if len(probe) < PROBE_TOKENS:
        return None
    found = _places(held, probe, start + 1)
    best = max(found, key=lambda place: common_prefix(held[place:], wanted[start:]), default=None)
    return None if best is None else _earliest(held, start, best)


def _earliest(tokens: Sequence[int], start: int, stop: int) -> tuple[int, int]:
    """Move a stretch to the left as far as what is left without it stays the same.

    So the newest of texts that are there twice stays, as a question that is asked again, at its own place.
    """
    while start and tokens[start - 1] == tokens[stop - 1]:
        start, stop = start - 1, stop - 1
    return start, stop


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens at the start of both are the same."""
    length = min(len(one), len(other))
    differs = np.flatnonzero(np.array(one[:length]) != np.array(other[:length]))
    return int(differs[0]) if len(differs) else length


def _places(tokens: Sequence[int], probe: Sequence[int], start: int) -> list[int]:
    """Return where the probe stands in `tokens`, from `start` on."""
    if len(tokens) - start < len(probe):
        return []
    windows = np.lib.stride_tricks.sliding_window_view(np.array(tokens[start:]), len(probe))
    matches = np.flatnonzero((windows == np.array(probe)).all(axis=1))
    return [start + int(place) for place in matches]


@dataclass(frozen=True)
class Cut:
    """The oldest turns as a stretch of a prompt: its first token and the one behind its last."""

    num_turns: int
    start: int
    stop: int


class TurnTrimmer:
    """Finds which tokens of a prompt are its oldest turns.

    Args:
        render: gives the tokens of messages.
        messages: what the prompt was made of.
    """

    def __init__(self, render: Render, messages: Sequence[ChatMessage]) -> None:
        self._render = render
        self._messages = tuple(messages)

    def cut(self, prompt: Sequence[int]) -> Cut | None:
        """Return what to take out of a prompt for 60 % of it to stay, and count it as taken out.

        None where there is only the last turn, or where the template writes the rest otherwise without it.
        """
        num_turns = turns_beyond(self._render, self._messages, int(KEPT_SHARE * len(prompt)))
        if not num_turns:
            return None
        rest = without_oldest(self._messages, num_turns)
        stretch = removed_stretch(prompt, self._render(rest))
        if stretch is None:
            return None
        self._messages = rest
        return Cut(num_turns, *stretch)
