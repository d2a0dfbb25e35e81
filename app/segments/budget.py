"""How long segments, the notes on them, and notes that are joined may be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from engine.admission import LEAST_SEGMENT_TOKENS, MOST_SEGMENT_TOKENS, note_room_tokens

NOTE_SHARE = 40
"""The notes on one segment take this fraction of the context at most,"""
NOTE_TOKENS = (48, 160)
"""within these bounds."""
MOST_FITTING_TOKENS, FITTING_SHARE = 128, 8
"""The sentence that fits a question best has at most so many, and this fraction of the room beside notes."""
FRAME_TOKENS = 20
"""About what the number and the place of a note take."""
MARGIN_TOKENS = 8
"""What a text may take more in the middle of a prompt than alone."""


@dataclass(frozen=True)
class SegmentBudget:
    """Tokens of what is read and written when documents are read in segments.

    Attributes:
        segment_tokens: the most of one segment.
        note_tokens: the most of the note on it.
        writing_tokens: the most that are written for a note, reasoning included.
        join_tokens: the most of notes that are made shorter together.
    """

    segment_tokens: int
    note_tokens: int
    writing_tokens: int
    join_tokens: int

    @classmethod
    def of(cls, limit_tokens: int, frame_tokens: int, join_frame_tokens: int) -> SegmentBudget:
        """Return what a context of so many tokens leaves.

        Args:
            limit_tokens: of the context.
            frame_tokens: of a prompt for a note, without the words of the segment.
            join_frame_tokens: of a prompt for shorter notes, without the notes.
        """
        note_tokens = most_note_tokens(limit_tokens)
        writing_tokens = max(note_tokens, note_room_tokens(limit_tokens))
        room = limit_tokens - writing_tokens - MARGIN_TOKENS
        segment_tokens = min(MOST_SEGMENT_TOKENS, _round(room - frame_tokens))
        return cls(segment_tokens, note_tokens, writing_tokens, room - join_frame_tokens)

    def shared_by(self, num_segments: int, room_tokens: int) -> SegmentBudget:
        """Return it with notes so long that those on all segments have room together, within bounds.

        What is written beyond that takes time twice: until it is there, and until it has been made shorter.
        """
        share = room_tokens // max(num_segments, 1) - FRAME_TOKENS
        return dataclasses.replace(self, note_tokens=min(self.note_tokens, max(share, NOTE_TOKENS[0])))

    @property
    def missing_tokens(self) -> int:
        """What the context lacks for reading in segments to lead anywhere; 0 or less for nothing."""
        for_joins = 2 * (self.note_tokens + MARGIN_TOKENS) - self.join_tokens
        return max(LEAST_SEGMENT_TOKENS - self.segment_tokens, for_joins)


def _round(num_tokens: int) -> int:
    """Return a rounder number that is not larger.

    Questions of about the same length are to have the same segments, whose keys and values are kept.
    """
    return num_tokens - num_tokens % (1 << max(0, num_tokens.bit_length() - 3))


def most_fitting_tokens(room_tokens: int) -> int:
    """Return what the sentence that fits best may have beside notes or passages in so much room."""
    return min(MOST_FITTING_TOKENS, room_tokens // FITTING_SHARE)


def most_note_tokens(limit_tokens: int) -> int:
    """Return how long a note on a segment may be in a context of so many tokens."""
    return min(max(limit_tokens // NOTE_SHARE, NOTE_TOKENS[0]), NOTE_TOKENS[1])
