"""What the next message would take of the context."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from app.chat import prompt_messages
from app.document_prompt import document_ranges, message_text
from app.profiles import DocumentMode, Overflow, Profile
from app.store.records import Attachment, Message
from engine.engine import LoadedModel
from engine.model import ChatMessage
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.turns import KEPT_SHARE, turn_starts, without_turns
from ui.token_counts import TokenCounts


@dataclass(frozen=True)
class ContextUse:
    """Tokens of the next prompt by part; None while not all of it is counted.

    Attributes:
        history_tokens: the system prompt and the conversation so far, without what is left out.
        text_tokens: the text being written.
        attachment_tokens: its documents.
        template_tokens: what the chat template puts around the text and its documents.
        limit_tokens: what the context holds, None without a model.
        fitting_tokens: what model and memory hold, whatever the limit that was set; None without a model.
        model_tokens: what the model was made for; None without one.
        left_out_turns: the oldest turns that are left out, so that the rest fits.
        document_tokens: documents, those of the conversation so far included, that are read in parts where
            they do not fit whole; 0 where they have to.
        has_turns: whether anything was said in the conversation before.
    """

    history_tokens: int | None
    text_tokens: int | None
    attachment_tokens: int | None
    template_tokens: int | None
    limit_tokens: int | None
    fitting_tokens: int | None = None
    model_tokens: int | None = None
    left_out_turns: int = 0
    document_tokens: int = 0
    has_turns: bool = True

    @property
    def used_tokens(self) -> int | None:
        """Tokens of everything together."""
        parts = (self.history_tokens, self.text_tokens, self.attachment_tokens, self.template_tokens)
        return _sum(parts, 0)

    @property
    def surplus_tokens(self) -> int:
        """Tokens by which it does not fit, the least room for an answer counted; 0 when it fits."""
        if self.read_tokens is None or self.limit_tokens is None:
            return 0
        return max(0, self.read_tokens + MIN_ANSWER_TOKENS - self.limit_tokens)

    @property
    def is_in_parts(self) -> bool:
        """Whether documents are read in parts, as not all fits whole."""
        used, limit = self.used_tokens, self.limit_tokens
        if used is None or limit is None:
            return False
        return self.document_tokens > 0 and used + MIN_ANSWER_TOKENS > limit

    @property
    def read_tokens(self) -> int | None:
        """Tokens of everything that has to be read whole."""
        if self.used_tokens is None or not self.is_in_parts:
            return self.used_tokens
        return self.used_tokens - self.document_tokens


UNKNOWN = ContextUse(None, None, None, None, None)


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
        profile: Profile,
        answer_tokens: int,
    ) -> ContextUse:
        """Return what the next prompt takes of the loaded model's context.

        Args:
            path: the messages that the model still reads.
            system_prompt: what comes before them.
            text: the text being written.
            attachments: its documents.
            loaded: the model, None without one.
            profile: precision, context limit, and whether old turns may be left out.
            answer_tokens: the longest answer.
        """
        if loaded is None or not self._counts.available:
            return UNKNOWN
        history = prompt_messages(path, system_prompt)
        asked = _Asked(self._counts, history, text, tuple(attachments), loaded, profile)
        whole = asked.without(0)
        if profile.overflow is not Overflow.DROP or whole.read_tokens is None:
            return whole
        limit = asked.limit_tokens
        answer = max(MIN_ANSWER_TOKENS, min(answer_tokens, limit // 4))
        if whole.read_tokens + answer <= limit:
            return whole
        return asked.without(asked.turns_beyond(KEPT_SHARE * limit))


@dataclass(frozen=True)
class _Asked:
    """What is to be answered, with a model and a profile."""

    counts: TokenCounts
    history: tuple[ChatMessage, ...]
    text: str
    attachments: tuple[Attachment, ...]
    loaded: LoadedModel
    profile: Profile

    @property
    def fitting_tokens(self) -> int:
        return self.loaded.plan_at(self.profile.kv).fitting_tokens

    @property
    def limit_tokens(self) -> int:
        most = self.profile.max_context
        return self.fitting_tokens if most is None else min(self.fitting_tokens, most)

    def without(self, num_turns: int) -> ContextUse:
        """Return what it takes without so many of the oldest turns."""
        rest = without_turns(self.history, num_turns)
        has_system_prompt = bool(rest) and rest[0].role == "system"
        num_messages = len(rest) - has_system_prompt
        template = self.loaded.template
        around = template.around(num_messages, has_system_prompt)
        own = template.around(num_messages + 1, has_system_prompt) - around
        return ContextUse(
            _sum([self.counts.count(message.content) for message in rest], around),
            self.counts.count(self.text),
            _sum([self.counts.count(message_text("", [each])) for each in self.attachments], 0),
            own if self.text or self.attachments else 0,
            self.limit_tokens,
            self.fitting_tokens,
            self.loaded.info.context_tokens,
            num_turns,
            self._document_tokens(rest),
            bool(turn_starts(self.history)),
        )

    def turns_beyond(self, most_tokens: float) -> int:
        """Return the fewest turns to leave out for the rest to take at most so many tokens, at most all.

        While nothing is being written, the last turn stays: it is the one that is answered.
        """
        is_next = bool(self.text or self.attachments)
        num_turns = max(0, len(turn_starts(self.history)) - (not is_next))
        count = 1 + bisect.bisect_left(
            range(1, num_turns), True, key=lambda turns: (self.without(turns).read_tokens or 0) <= most_tokens
        )
        return min(count, num_turns)

    def _document_tokens(self, rest: Sequence[ChatMessage]) -> int:
        """Return the tokens of all documents, as far as they are counted, where they may be read in parts."""
        if self.profile.document_mode is not DocumentMode.SEGMENTS:
            return 0
        own = message_text(self.text, self.attachments)
        messages = [*rest, ChatMessage("user", own, document_ranges(self.attachments))]
        texts = [
            message.content[document.start : document.stop]
            for message in messages
            for document in message.documents
        ]
        return sum(self.counts.count(text) or 0 for text in texts)


def context_note(use: ContextUse, profile: Profile) -> str:
    """Return what is to be said beside the meter: turns that are left out, or a limit beyond what fits.

    A limit beyond what the model was made for is none of memory's business.
    """
    notes = []
    if use.left_out_turns and not use.surplus_tokens:  # else nothing is sent that would leave them out
        turns = "turn is" if use.left_out_turns == 1 else f"{use.left_out_turns} turns are"
        notes.append(f"The oldest {turns} left out.")
    if use.is_in_parts:
        notes.append("Documents that do not fit whole are read in parts.")
    wanted, fitting = profile.max_context, use.fitting_tokens
    if wanted is not None and fitting is not None and fitting < min(wanted, use.model_tokens or wanted):
        notes.append(f"Of the limit of {wanted:,} tokens, {fitting:,} fit into memory.")
    return " ".join(notes)


def _sum(counts: Sequence[int | None], extra: int) -> int | None:
    if any(count is None for count in counts):
        return None
    return sum(count or 0 for count in counts) + extra
