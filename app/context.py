"""What the model reads of a conversation: all of it, or without its oldest turns."""

from __future__ import annotations

from dataclasses import dataclass

from app.store.records import Message
from engine.model import ChatMessage
from engine.turns import turn_starts


@dataclass(frozen=True)
class ConversationContext:
    """The messages of a conversation, and where the model begins to read.

    Attributes:
        path: the messages that have words, from the first one on.
        prompt: one message for the model for each.
        first: index of the first one that the model reads.
    """

    path: tuple[Message, ...]
    prompt: tuple[ChatMessage, ...]
    first: int = 0

    def read_from(self, message_id: int | None) -> ConversationContext:
        """Return the context from one of its messages on; all of it where that is another branch's."""
        ids = [message.id for message in self.path]
        first = ids.index(message_id) if message_id in ids else 0
        return ConversationContext(self.path, self.prompt, first)

    def without(self, num_turns: int) -> ConversationContext:
        """Return the context without so many of the oldest turns that are still read."""
        starts = [start for start in turn_starts(self.prompt) if start >= self.first]
        if num_turns <= 0 or not starts:
            return self
        return ConversationContext(self.path, self.prompt, starts[min(num_turns, len(starts) - 1)])

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """What the model reads."""
        return self.prompt[self.first :]

    @property
    def first_id(self) -> int | None:
        """The first message that the model reads, None where that is the whole conversation."""
        return self.path[self.first].id if self.first else None

    @property
    def left_out_turns(self) -> int:
        """How many turns it does not read."""
        return sum(start < self.first for start in turn_starts(self.prompt))
