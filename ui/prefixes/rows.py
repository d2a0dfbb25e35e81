"""What is kept on disk as rows: one for each conversation, and one for all that is read without one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from app.store.prefixes.records import PrefixEntry
from engine.wording import format_nbytes
from ui.conversations.list_model import age_text

WITHOUT_CONVERSATION = "Read without a conversation"
_NONE = "–"


@dataclass(frozen=True)
class PrefixRow:
    """One row.

    Attributes:
        conversation_ids: of all that the row stands for.
        title: of the conversation, or what stands for it.
        is_conversation: whether it is one conversation, which can be opened and pinned.
        num_tokens: of the longest text that is kept whole, 0 for none.
        nbytes: on disk.
        shared_nbytes: of these, those that other conversations have as well.
        last_used: when it was last saved or read.
        is_pinned: whether it goes last when room is needed.
    """

    conversation_ids: tuple[int, ...]
    title: str
    is_conversation: bool
    num_tokens: int
    nbytes: int
    shared_nbytes: int
    last_used: datetime
    is_pinned: bool


def rows_of(entries: Iterable[PrefixEntry], titles: Mapping[int, str]) -> list[PrefixRow]:
    """Return a row for each entry whose conversation has a title, and one for all others together."""
    rows: list[PrefixRow] = []
    others: list[PrefixEntry] = []
    for entry in entries:
        title = titles.get(entry.conversation_id)
        if title is None:
            others.append(entry)
        else:
            rows.append(_row((entry,), title, is_conversation=True))
    if others:
        rows.append(_row(others, WITHOUT_CONVERSATION, is_conversation=False))
    return rows


def figures_of(row: PrefixRow, now: datetime) -> tuple[str, str, str, str]:
    """Return tokens, size, what of it is shared, and when it was used last, in words."""
    return (
        f"{row.num_tokens:,}" if row.num_tokens else _NONE,
        format_nbytes(row.nbytes),
        format_nbytes(row.shared_nbytes) if row.shared_nbytes else _NONE,
        age_text(row.last_used, now),
    )


def row_sentence(row: PrefixRow, now: datetime) -> str:
    """Return all of a row for who hears it, and for its tool tip."""
    parts = [row.title, "pinned"] if row.is_pinned else [row.title]
    if row.num_tokens:
        parts.append(f"{row.num_tokens:,} tokens")
    parts.append(f"{format_nbytes(row.nbytes)} on disk")
    if row.shared_nbytes:
        parts.append(f"{format_nbytes(row.shared_nbytes)} of it shared with other conversations")
    return f"{', '.join(parts)}, last used {age_text(row.last_used, now)}"


def _row(entries: Iterable[PrefixEntry], title: str, *, is_conversation: bool) -> PrefixRow:
    entries = tuple(entries)
    return PrefixRow(
        conversation_ids=tuple(entry.conversation_id for entry in entries),
        title=title,
        is_conversation=is_conversation,
        num_tokens=max(entry.num_tokens for entry in entries) if is_conversation else 0,
        nbytes=sum(entry.nbytes for entry in entries),
        shared_nbytes=sum(entry.shared_nbytes for entry in entries),
        last_used=max(entry.last_used for entry in entries),
        is_pinned=is_conversation and entries[0].is_pinned,
    )
