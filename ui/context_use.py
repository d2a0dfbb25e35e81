"""What the next message takes of the context, part by part, and what is said of that."""

from __future__ import annotations

from dataclasses import dataclass

from app.document_cost import ReadingRoom
from app.profiles import Overflow, Profile
from engine.reply_admission import MIN_ANSWER_TOKENS


@dataclass(frozen=True)
class ContextUse:
    """Tokens of the next prompt by part; None while not all of it is counted.

    Attributes:
        history_tokens: the system prompt and what the model reads of the conversation so far.
        text_tokens: the text being written.
        attachment_tokens: its documents.
        template_tokens: what the chat template puts around the text and its documents.
        limit_tokens: what the context holds, None without a model.
        fitting_tokens: what model and memory hold, whatever the limit that was set; None without a model.
        model_tokens: what the model was made for; None without one.
        released_turns: turns that are summarized or left out first, so that the rest fits.
        reading_tokens: what will be read of documents in segments or by looking up, at most.
        has_turns: whether anything was said in the conversation before.
        is_about: whether some of it was counted by its words, and is not held as it is.
        has_unanswered: whether the last message of the conversation still waits for its answer.
        document_room: the room that documents are read in, once old turns have left it that may and must;
            None without a model.
    """

    history_tokens: int | None
    text_tokens: int | None
    attachment_tokens: int | None
    template_tokens: int | None
    limit_tokens: int | None
    fitting_tokens: int | None = None
    model_tokens: int | None = None
    released_turns: int = 0
    reading_tokens: int = 0
    has_turns: bool = True
    is_about: bool = True
    has_unanswered: bool = False
    document_room: ReadingRoom | None = None

    @property
    def used_tokens(self) -> int | None:
        """Tokens of everything together that is there to be read."""
        parts = (self.history_tokens, self.text_tokens, self.attachment_tokens, self.template_tokens)
        return None if None in parts else sum(part or 0 for part in parts)

    @property
    def surplus_tokens(self) -> int:
        """Tokens by which it does not fit, the least room for an answer counted; 0 when it fits."""
        if self.used_tokens is None or self.limit_tokens is None:
            return 0
        return max(0, self.used_tokens + MIN_ANSWER_TOKENS - self.limit_tokens)

    @property
    def read_tokens(self) -> int | None:
        """Tokens of everything that the model will read, as far as there is room for it."""
        used, limit = self.used_tokens, self.limit_tokens
        if used is None or limit is None:
            return used
        return used + max(0, min(self.reading_tokens, limit - used - MIN_ANSWER_TOKENS))


UNKNOWN = ContextUse(None, None, None, None, None)


def context_note(use: ContextUse, profile: Profile) -> str:
    """Return what is to be said beside the meter: turns that are released, or a limit beyond what fits.

    A limit beyond what the model was made for is none of memory's business.
    """
    notes = []
    if use.released_turns:
        turns = "1 old turn" if use.released_turns == 1 else f"{use.released_turns:,} old turns"
        what = "summarized" if profile.overflow is Overflow.SUMMARIZE else "left out"
        if use.surplus_tokens:  # nothing is sent that would release them, and the meter counts without them
            notes.append(f"Counted with {turns} {what}.")
        else:
            notes.append(f"{turns} will be {what}{' first' if what == 'summarized' else ''}.")
    wanted, fitting = profile.max_context, use.fitting_tokens
    if wanted is not None and fitting is not None and fitting < min(wanted, use.model_tokens or wanted):
        notes.append(f"Of the limit of {wanted:,} tokens, {fitting:,} fit into memory.")
    return " ".join(notes)
