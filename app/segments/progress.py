"""How far documents have been read in parts, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from app.ledger.progress import SummaryProgress
from engine.events import GenerationEvent, PrefillProgress


@dataclass(frozen=True)
class SegmentProgress:
    """How far the reading in parts is.

    Attributes:
        part: the part that is being read, from 1 on, of all documents together.
        total: how many there are.
        title: the document that it belongs to.
        is_joining: whether its parts have been read, and notes on them are being made shorter.
        is_splitting: whether it is still being cut into parts; `part` and `total` are 0 then.
        done_tokens: tokens of the present prompt that have been read.
        total_tokens: how many those are; 0 before that is known.
    """

    part: int
    total: int
    title: str
    is_joining: bool = False
    done_tokens: int = 0
    total_tokens: int = 0
    is_splitting: bool = False

    @property
    def words(self) -> str:
        """What is being done, for people."""
        if self.is_splitting:
            return f"Cutting “{self.title}” into parts"
        if self.is_joining:
            return "Putting the notes together"
        return f"Reading part {self.part} of {self.total}"

    @property
    def share(self) -> float:
        """How much of all parts has been read, 0 to 1."""
        if self.is_splitting:
            return 0.0
        of_this = self.done_tokens / self.total_tokens if self.total_tokens else 0.0
        return 1.0 if self.is_joining else (self.part - 1 + of_this) / self.total


SegmentEvent = GenerationEvent | SegmentProgress
ReadingProgress = PrefillProgress | SegmentProgress | SummaryProgress
"""How far what is to be answered has been read, or what comes before that."""
