"""What is told before rows are restored: what it costs, what comes along, and what leaves again."""

from __future__ import annotations

from app.duration_words import short_duration
from app.ledger.planning import ContextRoom
from app.profiles import Overflow
from engine.reply_admission import MIN_ANSWER_TOKENS

_AGAIN = {
    Overflow.SUMMARIZE: "old turns are summarized again",
    Overflow.DROP: "old turns are left out again",
    Overflow.ASK: "you are asked what to do with old turns",
}


def cost_sentence(tokens: int | None, prefill_tps: float | None) -> str:
    """Return what restoring costs.

    Args:
        tokens: to read beside what is read anyway; None where no model could say.
        prefill_tps: how fast it reads, if that is known.
    """
    if tokens is None:
        return "What is restored is read with the next message."
    if not tokens:
        return "Restoring costs nothing: it comes back with the next message, without being read."
    time = f", {short_duration(tokens / prefill_tps)}" if prefill_tps else ""
    words = "1 token" if tokens == 1 else f"{tokens:,} tokens"
    return f"With it the next message reads {words} more{time}."


def along_sentence(num_turns: int) -> str:
    """Return that so many turns come back that were not chosen, as a summary stands for them, too."""
    if not num_turns:
        return ""
    turns = "1 other turn comes" if num_turns == 1 else f"{num_turns:,} other turns come"
    return f"{turns} back, too: the same summary stands for all of them."


def again_sentence(room: ContextRoom, overflow: Overflow) -> str:
    """Return what becomes of a context that is too full once rows are restored; empty where it is not."""
    about = f"The context then has about {room.num_tokens:,} tokens"
    if overflow is not Overflow.OFF:
        return (
            f"{about}, so with the next message {_AGAIN[overflow]}. What you pin stays."
            if room.is_due
            else ""
        )
    if room.num_tokens + MIN_ANSWER_TOKENS <= room.limit_tokens:
        return ""
    return f"{about}, too many for its limit of {room.limit_tokens:,}. Leave something else out as well."
