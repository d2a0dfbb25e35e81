"""What the engine's thread does for the documents of the next message, before it is sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadAheadProgress:
    """How far the documents of the next message are read before it is sent.

    Attributes:
        done: tokens that have been read, or were held already.
        total: tokens that there are to read.
        seconds_left: how long the rest takes, None before that is known.
        is_done: whether the next message waits only for its own words.
        error: a sentence on why they cannot be read ahead, else empty.
    """

    done: int
    total: int
    seconds_left: float | None = None
    is_done: bool = False
    error: str = ""
