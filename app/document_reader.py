"""What is read of documents for one question, beside those that are read whole: in segments, or looked up.

The chat and `octavo ask` both use it; they differ in where it is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.documents.ways import DocumentWay
from app.reading.keeping import ReadingKeeper
from app.reading.records import Reading, Source
from app.segments.progress import SegmentEvent
from engine.cancel import CancelToken
from engine.engine import Engine
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
    """

    attachment_id: int
    document: ReadableDocument
    way: DocumentWay


@dataclass(frozen=True)
class DocumentQuestion:
    """What documents are read for.

    Attributes:
        message_id: the question.
        words: what it asks; empty for a message of documents alone.
        kv: precision of the KV cache.
        room_tokens: what all that is read may have together beside the rest of the prompt.
        max_context: tokens of a prompt and what is written together at most.
        anyway: whether the user lets it pass that it does not fit into memory.
        reads_on: whether segments that have not been read are read; else they stay unread.
    """

    message_id: int
    words: str
    kv: KVSpec
    room_tokens: int
    max_context: int | None = None
    anyway: bool = False
    reads_on: bool = True


class DocumentReader:
    """Reads documents for questions; belongs to the engine's thread."""

    def __init__(self, engine: Engine, keeper: ReadingKeeper) -> None:
        self._engine = engine
        self._keeper = keeper

    def read(
        self,
        question: DocumentQuestion,
        documents: Sequence[DocumentToRead],
        cancel: CancelToken,
        wanted_kv: Callable[[], KVSpec] | None = None,
    ) -> Generator[SegmentEvent, None, tuple[Reading, ...]]:
        """Yield how far it is; return what was read of each document, done.

        What is kept already is not read again. A segment that cannot be read is tried once more and then
        reported as FAILED.

        Raises:
            Cancelled: it was stopped; what was read until then is kept.
            AdmissionError: there is no room for a segment.
            ModelError: no model is loaded.
        """
        raise NotImplementedError

    def sources(
        self, answer: str, readings: Sequence[Reading], documents: Sequence[DocumentToRead]
    ) -> tuple[Source, ...]:
        """Return the passages that an answer may rest on, by their numbers; those that it cites are so."""
        raise NotImplementedError
