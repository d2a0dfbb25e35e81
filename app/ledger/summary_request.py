"""What a summary is to be written of, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.kv.precision import KVSpec

if TYPE_CHECKING:
    from engine.model import ChatMessage

LEAST_SUMMARY_TOKENS = 24
"""What a summary of little may have, since 15 % of it would be no sentence."""


def most_summary_tokens(source_tokens: int) -> int:
    """Return the tokens that a summary may have: 15 % of what it replaces, rounded down.

    Below 160 tokens that would be no sentence, and it may have 24, but never more than what it replaces.
    """
    return max(source_tokens * 15 // 100, min(LEAST_SUMMARY_TOKENS, source_tokens))


@dataclass(frozen=True)
class SummaryRequest:
    """A run of messages, or one document, and how it is summarized.

    Attributes:
        messages: what the model reads now, from the system prompt to the last message of the run. For a
            document the last one is the user message that it belongs to, which ends with it: its other
            documents may stand before it, what is behind it is cut off.
        first: index in `messages` of the first one of the run; for a document that of the last message.
        covers: keys of the messages, or of the attachment, that the summary stands for.
        num_turns: turns of the run; 0 for a document.
        source_tokens: tokens of the context that the summary replaces.
        kv: precision of the conversation's cache.
        conversation_id: whose cache holds `messages` already.
        max_context: tokens of the context at most.
        repetition_penalty: as in `SamplingParams`.
        anyway: whether the user lets it pass that the conversation does not fit.
    """

    messages: tuple[ChatMessage, ...]
    first: int
    covers: tuple[str, ...]
    num_turns: int
    source_tokens: int
    kv: KVSpec
    conversation_id: int
    max_context: int | None = None
    repetition_penalty: float = 1.0
    anyway: bool = False

    @property
    def is_document(self) -> bool:
        """Whether it is the last document of the last message that is summarized."""
        return not self.num_turns
