"""What was read of documents for questions, and the sources of answers, as plain data.

Places are characters of an attachment's text: the first one, and the one behind the last.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from app.documents.ways import DocumentWay


def reading_key(reading_id: int) -> str:
    """Return the key, in what a model reads, of what was read of a document for a question."""
    return f"r{reading_id}"


def placeholder_key(attachment_id: int) -> str:
    """Return the key of the words that stand for a document that is not read whole."""
    return f"p{attachment_id}"


class SegmentState(enum.Enum):
    """How far a segment has come; the value is how it is stored."""

    UNREAD = "unread"
    READ = "read"
    FAILED = "failed"
    """It was tried twice; `ReadSegment.error` says why it could not be read."""


@dataclass(frozen=True)
class ReadSegment:
    """A segment of a document that is read for a question, or a passage that was looked at.

    Attributes:
        start: its first character in the attachment's text.
        stop: the one behind its last.
        state: how far it has come.
        note: what it says about the question; empty where that is nothing, and for passages looked at.
        is_extract: whether the note is sentences of the segment itself, because the model's own was not
            supported by it.
        error: why it FAILED, else empty.
    """

    start: int
    stop: int
    state: SegmentState = SegmentState.UNREAD
    note: str = ""
    is_extract: bool = False
    error: str = ""


@dataclass(frozen=True)
class Reading:
    """What is read of one document for one question, in segments or by looking up.

    Attributes:
        id: of its row; ids are never used again.
        message_id: the question.
        attachment_id: the document.
        way: SEGMENTS or LOOK_UP.
        model: the name of the model that took the notes.
        text: what the model reads of it in the place of the document; empty until all has been read. It never
            changes then.
        num_segments: how many segments or passages there are.
        num_read: how many of them have been read.
        num_failed: how many of them could not be read.
    """

    id: int
    message_id: int
    attachment_id: int
    way: DocumentWay
    model: str
    text: str
    num_segments: int
    num_read: int
    num_failed: int

    @property
    def key(self) -> str:
        """Its key."""
        return reading_key(self.id)

    @property
    def is_done(self) -> bool:
        """Whether it is ready to be answered from."""
        return bool(self.text)

    def serves(self, way: DocumentWay, model: str, *, reads_on: bool) -> bool:
        """Return whether it is answered from as it is; else the document is read on, or anew.

        Args:
            way: how the document is to be read.
            model: the name of the model; notes of another one are not used.
            reads_on: whether segments that have not been read are to be.
        """
        if not self.is_done or self.way is not way:
            return False
        if way is DocumentWay.LOOK_UP:
            return True
        return self.model == model and (self.num_read == self.num_segments or not reads_on)


def written_readings(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    """Return those of the readings for a question that the model reads.

    A document that was looked up in vain is not told of beside what was found in others; where nothing was
    found in any, the first one is.
    """
    in_vain = [each for each in readings if each.way is DocumentWay.LOOK_UP and not each.num_segments]
    others = tuple(each for each in readings if each not in in_vain)
    return others or tuple(in_vain[:1])


class SourceKind(enum.Enum):
    """How an answer came by a passage; the value is how it is stored."""

    NOTED = "noted"
    """A note was taken on it for this question."""
    LOOKED_AT = "looked_at"
    """It was looked up for this question."""
    ATTENDED = "attended"
    """The model's attention went there while it answered: an indication, not a proof."""


@dataclass(frozen=True)
class Source:
    """A passage that an answer may rest on.

    Attributes:
        number: what the answer cites it by, as in `[3]`; 0 for ATTENDED ones.
        attachment_id: the document.
        start: its first character in the attachment's text.
        stop: the one behind its last.
        kind: how the answer came by it.
        is_cited: whether the answer names its number, or says what stands there in its words.
        share: for ATTENDED ones, the share of the attention on documents that went there, 0 to 1.
    """

    number: int
    attachment_id: int
    start: int
    stop: int
    kind: SourceKind
    is_cited: bool = False
    share: float | None = None
