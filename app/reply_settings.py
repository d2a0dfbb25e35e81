"""How a reply is written, and what is asked of the engine for it."""

from __future__ import annotations

from dataclasses import dataclass

from app.ledger.context import ConversationContext
from app.profiles import DEFAULT_KEEP_RATIO, DEFAULT_TRIM_AT, DocumentMode, Overflow
from engine.kv.precision import KVSpec
from engine.model import ChatMessage
from engine.requests import GenerationRequest
from engine.sampling import SamplingParams


@dataclass(frozen=True)
class ReplySettings:
    """How a reply is written.

    Attributes:
        sampling: how tokens are chosen.
        kv: precision of the KV cache.
        system_prompt: an empty one leaves the model's own default.
        max_context: tokens of prompt and answer together at most, None for what the model and memory give.
        overflow: what happens to a conversation beyond that. What is chosen after a refusal is set for one
            reply.
        document_mode: how documents are read that do not fit whole, unless a way is chosen for one.
        trim_at: the share of the context beyond which `overflow` is due, room for an answer counted.
        keep_ratio: the share of the context that stays then.
        anyway: whether the user lets a message pass that does not fit into memory or `max_context`.
        looks_up_anyway: whether documents are looked up though the question is about all of them.
        reads_on: whether segments of documents that have not been read for the question are read; else it is
            answered from those that were.
        is_once: whether any of this was chosen for one reply, and is no wish for the next.
    """

    sampling: SamplingParams
    kv: KVSpec
    system_prompt: str
    max_context: int | None = None
    overflow: Overflow = Overflow.ASK
    document_mode: DocumentMode = DocumentMode.AUTO
    trim_at: float = DEFAULT_TRIM_AT
    keep_ratio: float = DEFAULT_KEEP_RATIO
    anyway: bool = False
    looks_up_anyway: bool = False
    reads_on: bool = True
    is_once: bool = False

    def request(
        self,
        context: ConversationContext,
        conversation_id: int,
        *,
        answer_key: str = "",
        shorter: ConversationContext | None = None,
    ) -> GenerationRequest:
        """Return what is asked of the engine for a conversation.

        Args:
            context: what the model reads.
            conversation_id: whose keys and values are used again.
            answer_key: the key of the answer.
            shorter: what it goes on with when memory is short.
        """
        return GenerationRequest(
            self._messages(context),
            self.sampling,
            self.kv,
            self.max_context,
            conversation_id,
            anyway=self.anyway,
            answer_key=answer_key,
            shorter=() if shorter is None else self._messages(shorter),
            left=context.left_keys,
            pinned=context.pinned_keys,
            keep_ratio=self.keep_ratio,
        )

    def _messages(self, context: ConversationContext) -> tuple[ChatMessage, ...]:
        return (*system_message(self.system_prompt), *context.messages)


def system_message(system_prompt: str) -> tuple[ChatMessage, ...]:
    """Return the message that tells the model how to be; none for an empty one."""
    return (ChatMessage("system", system_prompt),) if system_prompt.strip() else ()
