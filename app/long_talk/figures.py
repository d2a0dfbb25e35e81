"""What is measured of long conversations about a document; plain data."""

from __future__ import annotations

from dataclasses import dataclass

from app.ledger.entries import LedgerReport
from app.profiles import Overflow
from engine.bench.trim.figures import LongRun


@dataclass(frozen=True)
class FactCounts:
    """Facts of the document that were asked for.

    Attributes:
        asked: while the model read the part that has them.
        right: of these, answered right.
        gone: of those that were asked, the ones whose part had left the context at the end.
        right_again: of the gone, answered right when they were asked for again at the end.
        told: of the gone, still told by something that the model reads then.
        summarized: of the gone, told by a summary.
    """

    asked: int
    right: int
    gone: int
    right_again: int
    told: int
    summarized: int


@dataclass(frozen=True)
class HeldConversation:
    """A conversation about a document.

    Attributes:
        overflow: what happened to old turns.
        run: its turns.
        ledger: its context at the end.
        facts: what was remembered.
    """

    overflow: Overflow
    run: LongRun
    ledger: LedgerReport
    facts: FactCounts


@dataclass(frozen=True)
class ConversationBench:
    """The same conversation with one policy after the other.

    Attributes:
        title: of the document.
        document_tokens: of all of it.
        handed_tokens: of the parts that were handed over.
        num_excerpts: how many parts that were.
        conversations: one for each policy.
    """

    title: str
    document_tokens: int
    handed_tokens: int
    num_excerpts: int
    conversations: tuple[HeldConversation, ...]
