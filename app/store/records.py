"""The rows of `conversations.db` as plain, frozen data."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from app.profiles import Profile
from app.reading.records import Source
from engine.events import GenerationStats


class Role(enum.Enum):
    """Who wrote a message."""

    USER = "user"
    ASSISTANT = "assistant"


class MessageState(enum.Enum):
    """How far a message has come; every state but STREAMING is final, and the message then never changes."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    STOPPED = "stopped"
    """The user stopped the reply."""
    INTERRUPTED = "interrupted"
    """The program ended while the reply was written."""
    FAILED = "failed"
    """The engine failed while the reply was written; `Message.error` says why."""


@dataclass(frozen=True)
class Attachment:
    """A document beside a message: its text as extracted, and where it came from.

    Attributes:
        kind: `pdf`, `docx`, `epub`, `html`, `markdown`, `text` or `code`.
        num_pages: pages of a PDF, None where the format has none.
        encoding: the text encoding that was used, None where the format has its own.
        encoding_guessed: whether that encoding is a guess that the user may change.
        page_starts: where each page begins in `text`, as in `Document`; empty where the format has no pages.
    """

    id: int
    title: str
    source: str
    kind: str
    text: str
    num_pages: int | None
    encoding: str | None
    encoding_guessed: bool
    page_starts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Message:
    """One message of a conversation, a node of its tree.

    Attributes:
        parent_id: the message before it, None for the first.
        siblings: ids of all messages with the same parent and this one, oldest first.
        stats: figures of a finished reply, None for user messages and replies without any.
        model: the name of the model that wrote a reply, None for user messages.
        error: why a FAILED reply failed, else None.
        sources: passages of documents that a reply may rest on, in order.
    """

    id: int
    conversation_id: int
    parent_id: int | None
    role: Role
    text: str
    created_at: datetime
    state: MessageState
    attachments: tuple[Attachment, ...]
    siblings: tuple[int, ...]
    stats: GenerationStats | None
    model: str | None
    error: str | None
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Conversation:
    """One entry of the conversation list.

    Attributes:
        leaf_id: the message that the conversation shows last, None while it is empty.
        draft: text that was typed and not sent.
        profile: how it is read and kept, None where that was never chosen.
    """

    id: int
    title: str
    created_at: datetime
    updated_at: datetime
    pinned: bool
    leaf_id: int | None
    draft: str
    profile: Profile | None
