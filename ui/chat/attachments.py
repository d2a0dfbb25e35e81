"""What is shown of documents, those that are about to be sent and those that were."""

from __future__ import annotations

import enum
import textwrap
from dataclasses import dataclass

from app.store.records import Attachment

_MAX_TIP_CHARS = 320
_TIP_WIDTH = 80


class ChipState(enum.Enum):
    """How far a document has come."""

    READING = "reading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True)
class AttachmentChip:
    """One document above the composer's text.

    Attributes:
        key: a number of the owner's choice; the composer's signals name the chip by it.
        title: the document's title or file name.
        detail: a short line such as `14 pages · 42,310 characters · 10,554 tokens`.
        progress: done and total of reading, None while unknown.
        error: one sentence, for FAILED.
        encoding: the text encoding in use, where the user may choose another, else None.
        tip: where the document is and how its text begins.
    """

    key: int
    title: str
    detail: str = ""
    state: ChipState = ChipState.READY
    progress: tuple[int, int] | None = None
    error: str | None = None
    encoding: str | None = None
    tip: str = ""


def size_text(attachment: Attachment, *, note: str = "", tokens: int | None = None) -> str:
    """Return a document's size in words: pages with a note on them, characters, and tokens where known."""
    parts = []
    if attachment.num_pages is not None:
        parts.append(f"{attachment.num_pages:,} page{'' if attachment.num_pages == 1 else 's'}")
    if note:
        parts.append(note)
    parts.append(f"{len(attachment.text):,} characters")
    if tokens is not None:
        parts.append(f"{tokens:,} tokens")
    return " · ".join(parts)


def tip_text(attachment: Attachment) -> str:
    """Return where a document is and how its text begins, by which a wrong encoding is seen."""
    beginning = textwrap.shorten(attachment.text[:_MAX_TIP_CHARS], _MAX_TIP_CHARS, placeholder="")
    lines = textwrap.wrap(beginning + ("…" if len(attachment.text) > _MAX_TIP_CHARS else ""), _TIP_WIDTH)
    return "\n\n".join(part for part in (attachment.source, "\n".join(lines)) if part)
