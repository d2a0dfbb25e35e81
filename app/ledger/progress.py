"""How far the writing of summaries is, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SummaryProgress:
    """How far a summary is.

    Attributes:
        num_turns: turns that it is to replace; 0 for a document.
        done_tokens: tokens read and written for it so far.
        most_tokens: the most tokens that are read and written for it.
    """

    num_turns: int
    done_tokens: int
    most_tokens: int

    @property
    def words(self) -> str:
        """What is being done, for people."""
        if not self.num_turns:
            return "Summarizing a document"
        return "Summarizing 1 turn" if self.num_turns == 1 else f"Summarizing {self.num_turns:,} turns"

    @property
    def share(self) -> float:
        """How much of the work is done at least, 0 to 1."""
        return min(1.0, self.done_tokens / self.most_tokens) if self.most_tokens else 0.0


@dataclass(frozen=True)
class ContextChanged:
    """What is stored of a conversation's context was changed."""

    conversation_id: int
