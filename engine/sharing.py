"""What another conversation holds in memory of a prompt's beginning, such as the same document."""

from __future__ import annotations

from dataclasses import dataclass

from engine.held_context import HeldContext
from engine.known_sequences import KnownSequences
from engine.kv.precision import KVSpec
from engine.spans import Prompt
from engine.text_spans import between


@dataclass(frozen=True, eq=False)
class SharedBeginning:
    """The beginning of a prompt that another conversation holds.

    Attributes:
        prompt: begins so.
        kv: the precision that it is wanted at.
        num_tokens: how much of it that is.
        holder: what the other conversation holds.
    """

    prompt: Prompt
    kv: KVSpec
    num_tokens: int
    holder: HeldContext

    def begin(self) -> HeldContext:
        """Return a context of its own with these tokens, which are not read again; it shares their pages."""
        cache = self.holder.cache.share(self.num_tokens, self.kv)
        return HeldContext(cache, tuple(between(self.prompt.spans, 0, self.num_tokens)))


def shared_beginning(
    held: KnownSequences, conversation_id: int, prompt: Prompt, kv: KVSpec, kept_tokens: int
) -> SharedBeginning | None:
    """Return the longest beginning of a prompt that a conversation in memory has.

    None where it does not spare the reading of at least a page's tokens more than `kept_tokens`. At least a
    token is left to read.

    Args:
        held: the conversations.
        conversation_id: whose prompt it is, which is not asked.
        prompt: what is to be read.
        kv: the precision that it is wanted at.
        kept_tokens: how many of its tokens need not be read anyway.
    """
    tokens, least = prompt.tokens[:-1], kept_tokens + kv.page_tokens
    others = [context for number, context in held.contexts() if number != conversation_id]
    if len(tokens) < least or not others:
        return None
    found = [SharedBeginning(prompt, kv, one.cache.common_tokens(tokens, kv), one) for one in others]
    best = max(found, key=lambda one: one.num_tokens)
    return best if best.num_tokens >= least else None
