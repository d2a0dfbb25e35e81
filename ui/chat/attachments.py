"""What is shown of documents, those that are about to be sent and those that were."""

from __future__ import annotations

import enum
import textwrap
from dataclasses import dataclass

from app.document_cost import DocumentCost
from app.documents.ways import DocumentWay
from app.store.records import Attachment
from engine.wording import format_nbytes

_MAX_TIP_CHARS = 320
_TIP_WIDTH = 80

WAY_NAMES = {
    DocumentWay.WHOLE: "Read whole",
    DocumentWay.SEGMENTS: "In segments",
    DocumentWay.LOOK_UP: "Look up",
}
"""The ways as they are chosen."""

WAY_WORDS = {
    DocumentWay.WHOLE: "read whole",
    DocumentWay.SEGMENTS: "read in segments",
    DocumentWay.LOOK_UP: "looked up",
}
"""The ways as they are told."""

WAY_TIPS = {
    DocumentWay.WHOLE: "The model reads all of the text and keeps it in its context.",
    DocumentWay.SEGMENTS: "The model reads the text piece by piece with your question, and answers from the "
    "notes it takes.",
    DocumentWay.LOOK_UP: "The model reads only the passages that have the words of your question.",
}
"""What each way does."""


@dataclass(frozen=True)
class ShownWays:
    """How a document that was sent is read; None while that is not decided.

    Attributes:
        told: for the question that it came with.
        chosen: for the next one.
    """

    told: DocumentWay | None = None
    chosen: DocumentWay | None = None

    @property
    def words(self) -> str:
        """How it was read, where that is to be said: not of what is read whole, then and now."""
        if {self.told, self.chosen} <= {None, DocumentWay.WHOLE} or self.told is None:
            return ""
        return WAY_WORDS[self.told]


class ChipState(enum.Enum):
    """How far a document has come."""

    READING = "reading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class AheadWords:
    """How far a document is read before its message is sent.

    Attributes:
        text: it in words, such as `Read 2,048 of 6,100 tokens, about 40 s left`.
        short: the same on a line with others.
        progress: done and total, None where it is not being read.
    """

    text: str
    short: str
    progress: tuple[int, int] | None = None


@dataclass(frozen=True)
class AttachmentChip:
    """One document above the composer's text.

    Attributes:
        key: a number of the owner's choice; the composer's signals name the chip by it.
        title: the document's title or file name.
        detail: a short line such as `14 pages · 7,012 words · 10,554 tokens · 42 MB whole`.
        progress: done and total of extracting its text, None while unknown.
        error: one sentence, for FAILED.
        encoding: the text encoding in use, where the user may choose another, else None.
        tip: where the document is and how its text begins.
        attachment_id: of its attachment, None before its text is there.
        cost: what it costs by each way, None while that is not known.
        way: how it will be read, None while that is not known.
        ahead: how far it is read already, None where it is not to be.
        is_pasted: whether it is text that was pasted, which may be put into the message.
    """

    key: int
    title: str
    detail: str = ""
    state: ChipState = ChipState.READY
    progress: tuple[int, int] | None = None
    error: str | None = None
    encoding: str | None = None
    tip: str = ""
    attachment_id: int | None = None
    cost: DocumentCost | None = None
    way: DocumentWay | None = None
    ahead: AheadWords | None = None
    is_pasted: bool = False

    @property
    def status(self) -> str:
        """How it is read, on one line: its way and, where it is read already, how far that is."""
        if self.way is None:
            return ""
        if self.ahead is not None:
            return self.ahead.short
        if self.cost is None:
            return f"{WAY_NAMES[self.way]}: {WAY_WORDS[self.way]}"
        cost = self.cost.of(self.way)
        return cost.words if cost.num_pieces else f"{WAY_NAMES[self.way]}: {cost.words}"


def size_text(attachment: Attachment, *, note: str = "", tokens: int | None = None) -> str:
    """Return a document's size in words: pages with a note on them, characters, and tokens where known."""
    return " · ".join(filter(None, (_pages(attachment), note, *_length(attachment, tokens))))


def cost_text(attachment: Attachment, cost: DocumentCost, *, note: str = "") -> str:
    """Return a document's size: pages, words, tokens, and what it takes in memory when it is read whole."""
    words = _counted(cost.size.num_words, "word")
    tokens, nbytes = _counted(cost.size.num_tokens, "token"), f"{format_nbytes(cost.kv_nbytes)} whole"
    return " · ".join(filter(None, (_pages(attachment), note, words, tokens, nbytes)))


def tip_text(attachment: Attachment) -> str:
    """Return where a document is and how its text begins, by which a wrong encoding is seen."""
    beginning = textwrap.shorten(attachment.text[:_MAX_TIP_CHARS], _MAX_TIP_CHARS, placeholder="")
    lines = textwrap.wrap(beginning + ("…" if len(attachment.text) > _MAX_TIP_CHARS else ""), _TIP_WIDTH)
    return "\n\n".join(part for part in (attachment.source, "\n".join(lines)) if part)


def _pages(attachment: Attachment) -> str:
    return "" if attachment.num_pages is None else _counted(attachment.num_pages, "page")


def _length(attachment: Attachment, tokens: int | None) -> tuple[str, str]:
    characters = f"{len(attachment.text):,} characters"
    return characters, "" if tokens is None else _counted(tokens, "token")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
