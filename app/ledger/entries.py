"""The rows of a context ledger as they are shown, as plain data."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.ledger.records import Summary


class EntryKind(enum.Enum):
    """What a row stands for; the value is its name for people."""

    SYSTEM = "System prompt"
    DOCUMENT = "Document"
    TURN = "Turn"
    """A question with its answer."""
    SUMMARY = "Summary"


class EntryState(enum.Enum):
    """Whether the model reads it; the value says so."""

    IN_CONTEXT = "in context"
    UNREAD = "not read yet"
    """It is in the context, and the model reads it with the next message."""
    SUMMARIZED = "summarized"
    LEFT_OUT = "left out"

    @property
    def is_in_context(self) -> bool:
        """Whether it counts to what the model reads."""
        return self in (EntryState.IN_CONTEXT, EntryState.UNREAD)


@dataclass(frozen=True)
class LedgerEntry:
    """A row of the ledger.

    Attributes:
        kind: what it stands for.
        key: of the system prompt, the attachment or the summary; of a turn that of its first message.
        title: a document's name, the beginning of a question, or what a summary stands for.
        number: of a turn, from 1; 0 for others.
        state: whether the model reads it.
        is_pinned: whether it always stays.
        tokens: its tokens, without those of `parts`, but with those of what was read for a question; None
            where that is not known.
        is_about: whether `tokens` were counted from its words, without what the model's template adds.
        nbytes: its share of the bytes of the keys and values; None where the engine does not hold it.
        heat: its share of the attention, 0 to 1; None where that is not known.
        heat_rate: how many times as much attention a token of it gets as one of the context on average.
        is_on_disk: whether it left the context, or waits for the next message, and comes back without being
            read.
        summary: the summary itself, None for other kinds.
        can_pin, can_drop, can_summarize, can_restore: what the user can do with it.
        way: how a document that is not read whole is read for the next question, also where its turn is not
            read; None for all else.
        parts: the documents of a turn; what a summary stands for.
    """

    kind: EntryKind
    key: str
    title: str
    number: int = 0
    state: EntryState = EntryState.IN_CONTEXT
    is_pinned: bool = False
    tokens: int | None = None
    is_about: bool = False
    nbytes: int | None = None
    heat: float | None = None
    heat_rate: float | None = None
    is_on_disk: bool = False
    summary: Summary | None = None
    can_pin: bool = False
    can_drop: bool = False
    can_summarize: bool = False
    can_restore: bool = False
    way: DocumentWay | None = None
    parts: tuple[LedgerEntry, ...] = ()

    def walk(self) -> Iterator[LedgerEntry]:
        """Yield it and all that is below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True)
class LedgerReport:
    """A ledger with its sums.

    Attributes:
        entries: its rows, in the order of the conversation.
        tokens: in the context; None where not all of it is counted.
        is_about: whether that is an estimate, as it is where not all of it is held.
        nbytes: of all keys and values; None where the engine does not hold the conversation.
        unused_nbytes: of the room among them that no token uses.
        limit_tokens: what the context holds; None without a model.
        shares: tokens in the context by kind, those that are known.
        around_tokens: those of the context that are in no row, as of what the model's template adds.
        next_position: of the next token; None where the engine does not hold the conversation.
        positions: how many the model has; None likewise.
        empty_positions: how many of those before the next token no text has any more.
        versions: how many other versions of the conversation share pages with it.
        versions_nbytes: bytes that only these take.
    """

    entries: tuple[LedgerEntry, ...] = ()
    tokens: int | None = None
    is_about: bool = False
    nbytes: int | None = None
    unused_nbytes: int = 0
    limit_tokens: int | None = None
    shares: tuple[tuple[EntryKind, int], ...] = ()
    around_tokens: int = 0
    next_position: int | None = None
    positions: int | None = None
    empty_positions: int = 0
    versions: int = 0
    versions_nbytes: int = 0
