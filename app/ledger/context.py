"""What the model reads of a conversation: its turns, or summaries in their place, or nothing.

One rule for a path with and without a question that waits: the turn that waits for its answer is whole in
the context, but for its documents; every other turn, the last one included, is what the ledger says. So what
is in the context between two replies is also what stands before the next question.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from app.ledger.records import ContextChange, LedgerRows, Summary
from app.ledger.standing import PathItems, Standing
from app.store.records import Attachment, Message
from engine.kv.page_map import SpanKind
from engine.model import ChatMessage


class SpanState(enum.Enum):
    """Whether the model reads an item of the context; the value says so."""

    IN_CONTEXT = "in context"
    SUMMARIZED = "summarized"
    DROPPED = "left out"


@dataclass(frozen=True)
class Turn:
    """A question, or several in a row, with the answer.

    Attributes:
        messages: those that have words.
        keys: the keys of these messages: what a summary of the turn covers.
        state: whether the model reads it.
        summary: what stands for it, where it is summarized.
        read_keys: the keys of all that the model reads of it: messages, documents, summaries of documents.
            Those of summaries of earlier turns, which stand at its head, are not among them.
        is_pinned: whether a message or document of it is pinned, so that no trim releases it.
        is_pending: whether it waits for its answer.
    """

    messages: tuple[Message, ...]
    keys: tuple[str, ...]
    state: SpanState
    summary: Summary | None
    read_keys: tuple[str, ...]
    is_pinned: bool
    is_pending: bool


@dataclass(frozen=True)
class LedgerSpan:
    """An item of the context as it is shown.

    Attributes:
        kind: a question, an answer, a document or a summary.
        key: its key.
        title: a message's first words, a document's title, what a summary stands for.
        state: whether the model reads it.
        is_pinned: whether it is pinned itself.
        summary: the summary itself, or the one that stands for the message or document.
        message_id: the message that it is or belongs to; of a summary, the first that it stands for.
        attachment_id: of a document, else None.
        turn: index of its turn in `ConversationContext.turns`; of a summary, the first it stands for.
    """

    kind: SpanKind
    key: str
    title: str
    state: SpanState
    is_pinned: bool
    summary: Summary | None
    message_id: int
    attachment_id: int | None
    turn: int


@dataclass(frozen=True)
class ConversationContext:
    """The context of a path of a conversation.

    Attributes:
        path: the messages that have words, from the first one on.
        rows: what is stored of the context.
    """

    path: tuple[Message, ...]
    rows: LedgerRows

    @classmethod
    def of(cls, path: Sequence[Message], rows: LedgerRows) -> ConversationContext:
        """Return the context of a path; messages without a word are no part of it."""
        raise NotImplementedError

    @cached_property
    def messages(self) -> tuple[ChatMessage, ...]:
        """What the model reads, with keys, without a system prompt.

        A summary stands at the head of the first turn behind what it stands for that is read. `waiting` are
        those with no such turn.
        """
        raise NotImplementedError

    @cached_property
    def waiting(self) -> tuple[Summary, ...]:
        """The summaries that stand at the head of the next question, in order."""
        raise NotImplementedError

    def asking(self, text: str, documents: Sequence[Attachment] = ()) -> tuple[ChatMessage, ...]:
        """Return `messages` with a further question, which has no key, as they will be when it is sent."""
        raise NotImplementedError

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """All turns of the path, oldest first."""
        raise NotImplementedError

    @cached_property
    def spans(self) -> tuple[LedgerSpan, ...]:
        """All items of the path in order; a summary precedes what it stands for, a document its message."""
        raise NotImplementedError

    @property
    def pinned_keys(self) -> frozenset[str]:
        """Keys of the messages and documents of the path that are pinned."""
        raise NotImplementedError

    @property
    def left_out_turns(self) -> int:
        """How many turns the model does not read themselves: those that are summarized or dropped."""
        raise NotImplementedError

    def changed(self, change: ContextChange, *new: Summary) -> ConversationContext:
        """Return the context as if a change, and with it new summaries, had been stored."""
        raise NotImplementedError

    @cached_property
    def items(self) -> PathItems:
        """The messages and documents of the path, by key."""
        raise NotImplementedError

    @cached_property
    def standing(self) -> Standing:
        """What stands for what."""
        raise NotImplementedError
