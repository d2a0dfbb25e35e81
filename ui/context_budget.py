"""What the next message would take of the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.chat import message_text, prompt_messages
from app.store.records import Attachment, Message
from engine.engine import MIN_ANSWER_TOKENS, LoadedModel
from engine.kv.precision import KVSpec
from ui.token_counts import TokenCounts


@dataclass(frozen=True)
class ContextUse:
    """Tokens of the next prompt by part; None while not all of it is counted.

    Attributes:
        history_tokens: the system prompt and the conversation so far.
        text_tokens: the text being written.
        attachment_tokens: its documents.
        template_tokens: what the chat template puts around the text and its documents.
        limit_tokens: what the context holds, None without a model.
    """

    history_tokens: int | None
    text_tokens: int | None
    attachment_tokens: int | None
    template_tokens: int | None
    limit_tokens: int | None

    @property
    def used_tokens(self) -> int | None:
        """Tokens of everything together."""
        parts = (self.history_tokens, self.text_tokens, self.attachment_tokens, self.template_tokens)
        return _sum(parts, 0)

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
        loaded: LoadedModel | None,
        kv: KVSpec,
    ) -> ContextUse:
        """Return what the next prompt takes of the loaded model's context."""
        if loaded is None or not self._counts.available:
            return ContextUse(None, None, None, None, None)
        history = prompt_messages(path, system_prompt)
        has_system_prompt = bool(history) and history[0].role == "system"
        num_turns = len(history) - has_system_prompt
        around = loaded.template.around(num_turns, has_system_prompt)
        own = loaded.template.around(num_turns + 1, has_system_prompt) - around
        has_own = bool(text or attachments)
        return ContextUse(
            _sum([self._counts.count(message.content) for message in history], around),
            self._counts.count(text),
            _sum([self.attachment_tokens(attachment) for attachment in attachments], 0),
            own if has_own else 0,
            loaded.plan_at(kv).fitting_tokens,
        )


def surplus_sentence(use: ContextUse, has_documents: bool, most_tokens: int) -> str:
    """Return by how much the next prompt is too long and what helps; empty when it fits.

    `most_tokens` is what the context holds at the lowest KV precision.
    """
    limit = use.limit_tokens
    if not use.surplus_tokens or limit is None:
        return ""
    over = (use.used_tokens or 0) - limit
    size = f"{over:,} tokens too many" if over > 0 else "no room is left for an answer"
    history = use.history_tokens or 0
    own = (use.used_tokens or 0) - history
    history_fits, own_fits = (part + MIN_ANSWER_TOKENS <= limit for part in (history, own))
    remedies = []
    if history_fits or not own_fits:
        remedies.append("remove a document" if has_documents else "shorten the message")
    if most_tokens > limit:
        remedies.append("choose a lower KV precision")
    if own_fits or not history_fits:
        remedies.append("start a new conversation")
    what = "This does not fit" if history_fits else "The conversation is too long for the context"
    return f"{what}: {size}. {_either(remedies)}."


def _either(remedies: Sequence[str]) -> str:
    *first, last = remedies
    words = f"{', '.join(first)} or {last}" if first else last
    return words[0].upper() + words[1:]


def _sum(counts: Sequence[int | None], extra: int) -> int | None:
    if any(count is None for count in counts):
        return None
    return sum(count or 0 for count in counts) + extra
