"""What is asked about documents, and which of them are read for it in segments or looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.documents.ways import DocumentWay
from app.reading.records import Reading
from engine.kv.precision import KVSpec


class ReadableDocument(Protocol):
    """A document or an attachment: its text, and where its pages begin."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def kind(self) -> str:
        """Its format."""

    @property
    def text(self) -> str:
        """What is in it."""

    @property
    def page_starts(self) -> tuple[int, ...]:
        """Where each page begins in the text; empty where it has none."""


@dataclass(frozen=True)
class DocumentToRead:
    """A document that is read for a question in segments, or looked up.

    Attributes:
        attachment_id: which one.
        document: its text and places.
        way: SEGMENTS or LOOK_UP.
        stored: what is kept of reading it for this question.
    """

    attachment_id: int
    document: ReadableDocument
    way: DocumentWay
    stored: Reading | None = None

    def is_ready(self, model: str, *, reads_on: bool) -> bool:
        """Return whether what is kept is answered from as it is, see `Reading.serves`."""
        return self.stored is not None and self.stored.serves(self.way, model, reads_on=reads_on)


@dataclass(frozen=True)
class DocumentQuestion:
    """What documents are read for.

    Attributes:
        message_id: the question.
        words: what it asks; empty for a message of documents alone.
        kv: precision of the KV cache.
        room_tokens: what all that is read may have together beside the rest of the prompt.
        conversation_id: with which keys and values of segments are deleted from the disk.
        first_number: of the first note; smaller ones are in use.
        max_context: tokens of a prompt and what is written together at most.
        repetition_penalty: as in the answer.
        anyway: whether the user lets it pass that it does not fit into memory.
        reads_on: whether segments that have not been read are read; else they stay unread.
    """

    message_id: int
    words: str
    kv: KVSpec
    room_tokens: int
    conversation_id: int = 0
    first_number: int = 1
    max_context: int | None = None
    repetition_penalty: float = 1.0
    anyway: bool = False
    reads_on: bool = True
