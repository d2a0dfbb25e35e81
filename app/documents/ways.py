"""The ways to read a document."""

from __future__ import annotations

import enum


class DocumentWay(enum.Enum):
    """How a document is read for a question; the value is how it is stored."""

    WHOLE = "whole"
    """All of its text, in the context."""
    SEGMENTS = "segments"
    """Segment by segment, each alone with the question; the answer is written from the notes on them."""
    LOOK_UP = "look_up"
    """Only the passages that fit the words of the question."""
