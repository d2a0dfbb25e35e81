"""Text that was read before and must be read again, as its keys and values are not there any more."""

from __future__ import annotations

from dataclasses import dataclass

from engine.alignment import MOST_BORDER_TOKENS, kept_of
from engine.kv.page_map import SpanKind
from engine.spans import Prompt

EVICTED = "A part of what was kept on disk had made room for other pages"
DAMAGED = "A part of what was kept on disk was damaged"
OTHER_MODEL = "What is kept on disk was read by another model, or with another version of mlx-lm"
OTHER_PAGES = "The pages of the KV cache have another size now"
NOT_THERE = "Nothing of this conversation was in memory or on disk"
ONLY_DOCUMENTS = "Only system prompts and documents are kept on disk"
NOTHING_KEPT = "Nothing is kept on disk"
MODEL_UNKNOWN = "The files of the model were still being checked"


@dataclass(frozen=True)
class LostText:
    """What of a conversation has to be read again, and why.

    Attributes:
        why: the beginning of a sentence.
        text: all that was read of it, lost or not; None where that is not known.
    """

    why: str
    text: Prompt | None = None

    def note(self, wanted: Prompt, kept_tokens: int) -> str:
        """Return a sentence with the tokens of a prompt that are read again, empty for next to none.

        Args:
            wanted: the prompt.
            kept_tokens: so many of it need not be read.
        """
        read = answered_tokens(wanted) if self.text is None else kept_of(self.text, wanted)
        lost = read - kept_tokens
        return f"{self.why}: {lost:,} tokens were read again." if lost > MOST_BORDER_TOKENS else ""


def answered_tokens(prompt: Prompt) -> int:
    """Return how many tokens of a prompt precede the last question: they must have been read before."""
    answers = [span.stop for span in prompt.said.spans if span.kind is SpanKind.ASSISTANT]
    return answers[-1] if answers else 0
