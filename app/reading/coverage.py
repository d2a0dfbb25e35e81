"""How much of a document was read in segments, in words."""

from __future__ import annotations


def coverage_sentence(num_read: int, num_failed: int, num_segments: int) -> str:
    """Return a sentence that says how many segments were read, and what became of the others."""
    if num_read == num_segments:
        return "It was read in 1 segment." if num_read == 1 else f"It was read in {num_read:,} segments."
    num_unread = num_segments - num_read - num_failed
    others = [f"{num_failed:,} could not be read"] if num_failed else []
    others += [f"{num_unread:,} {'was' if num_unread == 1 else 'were'} not read"] if num_unread else []
    return f"{num_read:,} of its {num_segments:,} segments were read; {' and '.join(others)}."
