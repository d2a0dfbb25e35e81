"""What the next message would take of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.chat import message_text, prompt_messages
from app.store.records import Attachment, Message
from engine.engine import MIN_ANSWER_TOKENS
from ui.token_counts import TokenCounts

TURN_TOKENS = 5
"""What a chat template usually puts around one turn: its markers and its role."""


@dataclass(frozen=True)
class ContextUse:
    """Tokens of the next prompt by part; None while not all of it is counted.

    Attributes:
        history_tokens: the system prompt and the conversation so far.
        text_tokens: the text being written.
        attachment_tokens: its documents.
        limit_tokens: what the context holds, None without a model.
    """

    history_tokens: int | None
    text_tokens: int | None
    attachment_tokens: int | None
    limit_tokens: int | None

    @property
    def used_tokens(self) -> int | None:
        """Tokens of everything together."""
        parts = (self.history_tokens, self.text_tokens, self.attachment_tokens)
        return None if any(part is None for part in parts) else sum(part or 0 for part in parts)

    @property
    def surplus_tokens(self) -> int:
        """Tokens by which it does not fit, the least room for an answer counted; 0 when it fits."""
        if self.used_tokens is None or self.limit_tokens is None:
            return 0
        return max(0, self.used_tokens + MIN_ANSWER_TOKENS - self.limit_tokens)


class ContextBudget:
    """Adds up the tokens of a conversation's path, of the text being written and of its documents."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts

    def attachment_tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of one document as the model reads it."""
        return self._counts.count(message_text("", [attachment]))

    def use(
        self,
        path: Sequence[Message],
        system_prompt: str,
        text: str,
        attachments: Sequence[Attachment],
        limit_tokens: int | None,
    ) -> ContextUse:
        """Return what the next prompt takes."""
        if not self._counts.available:
            return ContextUse(None, None, None, limit_tokens)
        history = [self._counts.count(message.content) for message in prompt_messages(path, system_prompt)]
        documents = [self.attachment_tokens(attachment) for attachment in attachments]
        typed = self._counts.count(text)
        own = TURN_TOKENS if text or attachments else 0
        return ContextUse(
            _total(history, TURN_TOKENS),
            None if typed is None else typed + own,
            _total(documents, 0),
            limit_tokens,
        )


def _total(counts: Sequence[int | None], extra: int) -> int | None:
    if any(count is None for count in counts):
        return None
    return sum((count or 0) + extra for count in counts)
