"""What is stored of a conversation's context, as plain data.

The messages of a conversation never change, so an *item* of the context is named by a key: `m12` for a
message, `a7` for an attachment, `s3` for a summary, `r5` for what was read of a document for a question, `p7`
for the line that names a document which is not read whole.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.documents.ways import DocumentWay
from app.reading.records import Reading


def message_key(message_id: int) -> str:
    """Return the key of a message."""
    return f"m{message_id}"


def attachment_key(attachment_id: int) -> str:
    """Return the key of a document beside a message."""
    return f"a{attachment_id}"


def attachment_id(key: str) -> int:
    """Return the attachment that has a key."""
    return int(key.removeprefix("a"))


def summary_key(summary_id: int) -> str:
    """Return the key of a summary."""
    return f"s{summary_id}"


class SummarySource(enum.Enum):
    """Who wrote a summary."""

    MODEL = "model"
    EXTRACT = "extract"
    """Sentences of the text itself, chosen by rules, where the model could not write one."""


class SummaryState(enum.Enum):
    """What a summary is for."""

    PREPARED = "prepared"
    """It was written before it is needed and replaces nothing yet."""
    USED = "used"
    """It stands for what it covers, wherever all of that is on the path."""
    RETIRED = "retired"
    """It was taken back; what it covers is read itself again."""


@dataclass(frozen=True)
class Summary:
    """A summary of some items; only its state ever changes.

    Attributes:
        id: of its row; 0 before it is stored.
        text: its words.
        covers: keys of the messages, or of the attachments, that it stands for, those of the summaries that
            it replaced included. A message counts with its documents.
        source: who wrote it.
        note: a sentence that says why it is an extract, empty for one of the model's.
        model: the name of the model that wrote it, empty for an extract.
        source_tokens: tokens of what was in the context in its place.
        num_tokens: its own tokens, as counted when it was written.
        state: what it is for.
    """

    id: int
    text: str
    covers: tuple[str, ...]
    source: SummarySource
    note: str
    model: str
    source_tokens: int
    num_tokens: int
    state: SummaryState

    @property
    def key(self) -> str:
        """Its key."""
        return summary_key(self.id)

    def __hash__(self) -> int:
        """Hash the id alone: long conversations look summaries up thousands of times, by all their words."""
        return hash(self.id)


@dataclass(frozen=True)
class ItemMark:
    """What the user or a trim has set for a message or an attachment.

    Attributes:
        key: which one.
        is_pinned: whether trims leave it, and its turn, in the context.
        is_dropped: whether the model does not read it.
        way: how a document is read, None while that is not decided.
        after_reading: id of the newest reading when SEGMENTS was chosen: a document that was read in segments
            since is looked up for the questions that follow.
    """

    key: str
    is_pinned: bool = False
    is_dropped: bool = False
    way: DocumentWay | None = None
    after_reading: int = 0


@dataclass(frozen=True)
class ContextChange:
    """A change of a ledger: marks that replace those of the same keys, and new states of summaries.

    What it does has an inverse of the same form, so that everything can be undone.
    """

    marks: tuple[ItemMark, ...] = ()
    summaries: tuple[tuple[int, SummaryState], ...] = ()


NO_CHANGE = ContextChange()
"""Nothing to do."""


@dataclass(frozen=True)
class LedgerRows:
    """All that is stored of a conversation's context.

    Attributes:
        marks: by key; an item without one is in the context and not pinned.
        summaries: all of them, oldest first.
        readings: what was read of documents for questions, oldest first; at most one of each document for
            each question.
    """

    marks: Mapping[str, ItemMark] = field(default_factory=dict)
    summaries: tuple[Summary, ...] = ()
    readings: tuple[Reading, ...] = ()
