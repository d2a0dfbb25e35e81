"""How long stretches of tokens have taken to read and to write, until somebody asks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

_MOST_STRETCHES = 256
"""Nobody asks while a long prompt is read; of more than these the oldest are forgotten."""


@dataclass(frozen=True)
class TokenStretch:
    """Tokens that were read in one pass, or written one after another.

    Attributes:
        start: how many tokens were held before the first of them.
        stop: how many were held with the last.
        seconds: what they took, waits for memory left out.
        is_written: whether the model wrote them; else they were read.
    """

    start: int
    stop: int
    seconds: float
    is_written: bool


class TokenTimes:
    """Gathers stretches; belongs to the engine's thread."""

    def __init__(self) -> None:
        self._stretches: deque[TokenStretch] = deque(maxlen=_MOST_STRETCHES)

    def read(self, start: int, stop: int, seconds: float) -> None:
        """Take note that the tokens from `start` to `stop` were read in a pass."""
        self._add(TokenStretch(start, stop, seconds, is_written=False))

    def written(self, start: int, num_tokens: int, tokens_per_s: float) -> None:
        """Take note of how fast tokens were written behind `start` others; 0 where that is not known."""
        if tokens_per_s > 0:
            self._add(TokenStretch(start, start + num_tokens, num_tokens / tokens_per_s, is_written=True))

    def _add(self, stretch: TokenStretch) -> None:
        if stretch.stop > stretch.start and stretch.seconds > 0:
            self._stretches.append(stretch)

    def take(self) -> tuple[TokenStretch, ...]:
        """Return what was gathered since the last call, oldest first."""
        taken = tuple(self._stretches)
        self._stretches.clear()
        return taken
