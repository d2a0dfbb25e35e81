"""What the parts of a conversation's context take, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from engine.kv.page_map import SpanKind


@dataclass(frozen=True)
class SpanUsage:
    """What a stretch of the context takes.

    Attributes:
        kind: what it is.
        key: which message, document or summary it is, empty where that is not told.
        title: a document's name, or the beginning of a message.
        num_tokens: tokens that are held of it.
        nbytes: what its tokens take of full pages, and of the open tokens.
        heat: its share of the attention, a moving average, 0 to 1.
    """

    kind: SpanKind
    key: str
    title: str
    num_tokens: int
    nbytes: int
    heat: float


@dataclass(frozen=True)
class ReleasedSpan:
    """What left the context and has its keys and values on disk still, so that it can come back unread.

    Attributes:
        key: which message, document or summary it is.
        num_tokens: its tokens.
        nbytes: its share of the bytes on disk.
    """

    key: str
    num_tokens: int
    nbytes: int


@dataclass(frozen=True)
class ContextUsage:
    """What is held of the conversation in hand.

    Attributes:
        spans: its parts, in the order of the text.
        released: what left it and is on disk.
        num_tokens: tokens held.
        nbytes: bytes of all keys and values.
        unused_nbytes: of room among them that no token uses, as in pages that text has left.
        next_position: the position of the next token; more than `num_tokens` where text was taken out.
        positions: how many the model has.
        versions: how many other versions of the conversation, which share pages with it, are in memory.
        versions_nbytes: bytes that only these take.
    """

    spans: tuple[SpanUsage, ...]
    released: tuple[ReleasedSpan, ...]
    num_tokens: int
    nbytes: int
    next_position: int
    positions: int
    versions: int = 0
    versions_nbytes: int = 0
    unused_nbytes: int = 0
