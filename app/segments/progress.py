"""How far documents have been read in segments, as plain data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from app.ledger.progress import SummaryProgress
from engine.events import GenerationEvent, PrefillProgress


class SegmentStage(enum.Enum):
    """What is being done with documents before the answer is written."""

    SPLITTING = "splitting"
    """A document is being cut into segments; `SegmentProgress.number` and `total` are 0."""
    LOOKING_UP = "looking up"
    """Passages of a document are being looked up; `number` and `total` are 0."""
    READING = "reading"
    """Segment `number` of `total` is being read, or a note on it is being written."""
    JOINING = "joining"
    """All segments have been read, and notes that are too long together are being made shorter."""


_READING_SHARE = 0.9
"""So much of the time for a segment goes by before a note on it is written."""


@dataclass(frozen=True)
class SegmentProgress:
    """How far the reading in segments is.

    Attributes:
        number: the segment that is being read, from 1 on, of all documents together.
        total: how many there are.
        title: the document that it belongs to.
        stage: what is being done.
        done_tokens: tokens of the present prompt that have been read.
        total_tokens: how many those are; 0 before that is known.
        seconds_left: from when this segment was begun until all have been read, None before that is known.
    """

    number: int
    total: int
    title: str
    stage: SegmentStage = SegmentStage.READING
    done_tokens: int = 0
    total_tokens: int = 0
    seconds_left: float | None = None

    @property
    def words(self) -> str:
        """What is being done, for people."""
        match self.stage:
            case SegmentStage.SPLITTING:
                return f"Cutting “{self.title}” into segments"
            case SegmentStage.LOOKING_UP:
                return f"Looking up passages of “{self.title}”"
            case SegmentStage.JOINING:
                return "Putting the notes together"
        return f"Reading segment {self.number:,} of {self.total:,}"

    @property
    def share(self) -> float:
        """How much of all segments has been read, 0 to 1."""
        if self.stage is SegmentStage.JOINING:
            return 1.0
        return (self.number - 1 + self._share_of_this) / self.total if self.total else 0.0

    @property
    def seconds_from_now(self) -> float | None:
        """How long it takes until all segments have been read, with what has been read of this one."""
        if self.seconds_left is None:
            return None
        done = self._share_of_this * _READING_SHARE
        return self.seconds_left * (1 - done / (self.total - self.number + 1))

    @property
    def _share_of_this(self) -> float:
        return self.done_tokens / self.total_tokens if self.total_tokens else 0.0


SegmentEvent = GenerationEvent | SegmentProgress
ReadingProgress = PrefillProgress | SegmentProgress | SummaryProgress
"""How far what is to be answered has been read, or what comes before that."""
