"""What is said of a message that is too long: by how much, why, and what helps."""

from __future__ import annotations

from collections.abc import Sequence

from engine.admission import Choice
from engine.remedies import AS_DOCUMENT, as_sentence, remedies
from engine.reply_admission import MIN_ANSWER_TOKENS
from ui.context_use import ContextUse


def surplus_sentence(
    use: ContextUse,
    has_documents: bool,
    choices: Sequence[Choice],
    memory: str = "",
    more_memory: str = "",
) -> str:
    """Return by how much the next prompt is too long, why, and what helps; empty when it fits.

    Args:
        use: what it takes of the context.
        has_documents: whether there are documents beside the text.
        choices: what would make it fit.
        memory: a sentence with the bytes, where memory is what it does not fit into.
        more_memory: what to do then for there to be more.
    """
    if not use.surplus_tokens or use.limit_tokens is None:
        return ""
    history = use.history_tokens or 0
    own = (use.used_tokens or 0) - history
    history_fits, own_fits = (part + MIN_ANSWER_TOKENS <= use.limit_tokens for part in (history, own))
    ways = [more_memory] if more_memory else []
    if own and (history_fits or not own_fits or not use.has_turns):
        ways.append("remove a document" if has_documents else "shorten the message")
    if own and not own_fits and not has_documents:
        ways.append(AS_DOCUMENT)
    if use.has_unanswered and not history_fits:
        ways.append("edit the message that waits for its answer")
    ways.extend(remedies(choices))
    if use.has_turns and (own_fits or not history_fits):
        ways.append("start a new conversation")
    too_long = history_fits or not use.has_turns
    what = "This does not fit" if too_long else "The conversation is too long for the context"
    if memory:
        what = "This does not fit into memory" if too_long else "The conversation does not fit into memory"
    return " ".join(filter(None, [f"{what}: {_size(use, use.limit_tokens, memory)}.", memory, _advice(ways)]))


def _size(use: ContextUse, limit_tokens: int, memory: str) -> str:
    read = use.used_tokens or 0
    if memory:
        return f"it has {read:,} token{'' if read == 1 else 's'}, and {limit_tokens:,} fit"
    if read <= limit_tokens:
        return "no room is left for an answer"
    over = use.surplus_tokens  # with what is kept for an answer, as wherever such a number is told
    whose = "the model" if limit_tokens == use.model_tokens else "the context limit"
    return f"{over:,} tokens too many" + (f" for {whose}" if use.model_tokens is not None else "")


def _advice(ways: Sequence[str]) -> str:
    return as_sentence(ways) if ways else ""
