"""One document of a draft, from the file to what is shown of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from app.document_cost import DocumentCost
from app.documents.places import Places, page_ranges
from app.documents.ways import DocumentWay
from app.store.records import Attachment
from ui.background import BackgroundJob
from ui.chat.attachments import AheadWords, AttachmentChip, ChipState, cost_text, size_text, tip_text

NO_FILE = Path()
"""Where pasted text comes from."""

_MAX_LINE_CHARS = 20_000
"""Text with a longer line cannot be put into the message: a megabyte in one line takes half a minute to lay
out."""
_MAX_TEXT_CHARS = 500_000
"""Nor can text of more characters."""


class ReadingWords(Protocol):
    """Tells how documents are read, and what that costs."""

    def tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of a document, None while they are not counted."""

    def cost(self, attachment: Attachment) -> DocumentCost | None:
        """Return what a document costs by each way, None while that is not known."""

    def way(self, attachment: Attachment) -> DocumentWay | None:
        """Return how a document will be read, None while that is not known."""

    def ahead(self, attachment: Attachment) -> AheadWords | None:
        """Return how far a document is read already; None where it is not to be."""


@dataclass(eq=False)
class DraftDocument:
    """One document of one conversation's draft: being extracted, ready, or failed.

    Attributes:
        key: what the window calls it.
        path: what was dropped; `NO_FILE` for pasted text.
        kept: where it can be read, which may be a copy.
        title: what it is called, empty for its own title.
        attachment: what is stored of it, None before it was extracted.
        job: what extracts it.
        progress: how far that is.
        error: why it cannot be attached.
        encoding: in which encoding the user wants it.
        note: a word on its pages, for those without text.
        tip: where it is and how its text begins.
        is_short_text: whether it is pasted text that the field for messages can hold.
    """

    key: int
    path: Path
    kept: Path = NO_FILE
    title: str = ""
    attachment: Attachment | None = None
    job: BackgroundJob | None = None
    progress: tuple[int, int] | None = None
    error: str | None = None
    encoding: str | None = None
    note: str = field(default="", init=False)
    tip: str = field(default="", init=False)
    is_short_text: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Look at an attachment that was there already."""
        if self.attachment is not None:
            self.take(self.attachment)

    def take(self, attachment: Attachment) -> None:
        """Have its text, or another."""
        self.attachment = attachment
        self.note = _textless(attachment)
        self.tip = tip_text(attachment)
        self.is_short_text = not attachment.source and _is_short(attachment.text)

    @property
    def shown_title(self) -> str:
        """What it is called now."""
        if self.attachment is not None:
            return self.attachment.title
        return self.title or self.path.name or "Pasted text"

    def chip(self, reading: ReadingWords) -> AttachmentChip:
        """Return what is shown of it."""
        attachment = self.attachment
        if self.job is not None:
            state = ChipState.READING
            return AttachmentChip(self.key, self.shown_title, "Reading…", state, self.progress)
        if self.error is not None or attachment is None:
            state = ChipState.FAILED
            return AttachmentChip(
                self.key, self.shown_title, "", state, error=self.error, encoding=self.encoding
            )
        cost = reading.cost(attachment)
        return AttachmentChip(
            self.key,
            self.shown_title,
            self._detail(attachment, cost, reading),
            encoding=attachment.encoding,
            tip=self.tip,
            attachment_id=attachment.id,
            cost=cost,
            way=reading.way(attachment),
            ahead=reading.ahead(attachment),
            is_pasted=self.is_short_text,
        )

    def _detail(self, attachment: Attachment, cost: DocumentCost | None, reading: ReadingWords) -> str:
        if cost is None:
            detail = size_text(attachment, note=self.note, tokens=reading.tokens(attachment))
        else:
            detail = cost_text(attachment, cost, note=self.note)
        is_guess = attachment.encoding is not None and attachment.encoding_guessed
        return f"{detail} · {attachment.encoding}, guessed" if is_guess else detail


def _textless(attachment: Attachment) -> str:
    """Return which pages have no text; empty where all have."""
    pages = Places((), attachment.page_starts, len(attachment.text)).textless_pages
    if not pages:
        return ""
    return f"{len(pages):,} without text (p. {page_ranges(pages)})"


def _is_short(text: str) -> bool:
    if len(text) > _MAX_TEXT_CHARS:
        return False
    return max(map(len, text.splitlines()), default=0) <= _MAX_LINE_CHARS
