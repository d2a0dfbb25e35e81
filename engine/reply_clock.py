"""The times of a reply: until its first token, and of reading and writing without the waits for memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class ReplyClock:
    """Runs from the moment that a reply is asked for.

    A pause counts to the wait for the first token, which the user had, and to no speed.
    """

    def __init__(self) -> None:
        self._started_s = time.perf_counter()
        self._first_token_s: float | None = None
        self._paused_s = self._paused_before_s = 0.0

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Count the time that this lasts as a pause."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            self._paused_s += time.perf_counter() - began_s

    def token(self) -> None:
        """Take note of a token; only the first one matters."""
        if self._first_token_s is None:
            self._first_token_s = time.perf_counter()
            self._paused_before_s = self._paused_s

    @property
    def ttft_s(self) -> float:
        """Seconds until the first token; until now while there is none."""
        first_s = self._first_token_s
        return (time.perf_counter() if first_s is None else first_s) - self._started_s

    def prefill_tps(self, num_tokens: int) -> float:
        """Return how many tokens were read in a second."""
        paused_s = self._paused_s if self._first_token_s is None else self._paused_before_s
        return _rate(num_tokens, self.ttft_s - paused_s)

    def decode_tps(self, num_tokens: int) -> float:
        """Return how many tokens were written in a second; the first one ends the reading."""
        if self._first_token_s is None:
            return 0.0
        elapsed_s = time.perf_counter() - self._first_token_s
        return _rate(num_tokens - 1, elapsed_s - self._paused_s + self._paused_before_s)


def _rate(count: int, elapsed_s: float) -> float:
    return count / elapsed_s if count > 0 and elapsed_s > 0 else 0.0
