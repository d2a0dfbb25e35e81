"""All pages of a conversation as plain data, for whoever draws them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from engine.kv.usage import PageInfo


class SpanKind(enum.Enum):
    """What a stretch of the context is."""

    SYSTEM = "system prompt"
    DOCUMENT = "document"
    USER = "question"
    ASSISTANT = "answer"
    SUMMARY = "summary"
    NOTES = "notes"
    """What is read in the place of a document: its name, notes on it, or passages of it."""


@dataclass(frozen=True)
class TextSpan:
    """A stretch of the prompt that has a title.

    Attributes:
        kind: what it is.
        title: a document's name, or the beginning of a message.
        start: index of its first token among the tokens of the prompt.
        stop: index behind its last token.
        key: which message, document or summary of the conversation it is, empty where that is not told. What
            has the same key has the same words.
        marker_tokens: how many of its first tokens are the template's marker, which may differ.
    """

    kind: SpanKind
    title: str
    start: int
    stop: int
    key: str = ""
    marker_tokens: int = 0


@dataclass(frozen=True)
class PageCounters:
    """What happened to pages since the program started.

    Attributes:
        hits: pages that a new reply found in memory and did not read again.
        spills: pages that went to disk.
        restores: pages that came back from disk.
        evictions: pages that were given up and must be read again.
    """

    hits: int = 0
    spills: int = 0
    restores: int = 0
    evictions: int = 0


@dataclass(frozen=True)
class PageMap:
    """The pages of the conversation in hand, in the order of the text.

    Attributes:
        pages: one entry for each, in order.
        page_tokens: tokens of a full page.
        is_paged: whether the model keeps keys and values in pages at all; else all tokens stay open.
        open_tokens: ids of the tokens after the last page, which are held at 16 bits.
        next_position: of the token that would come next.
        num_decoded: tokens decoded so far; what `PageInfo.last_access` counts.
        spans: what the text is, by index of its tokens, in order and without overlap.
        counters: what happened to pages so far.
        attention_pages: how many pages at each precision decode reads now; None for all.
        caught: the share of attention that this catches, None without a sample.
    """

    pages: tuple[PageInfo, ...]
    page_tokens: int
    is_paged: bool
    open_tokens: tuple[int, ...]
    next_position: int
    num_decoded: int
    spans: tuple[TextSpan, ...]
    counters: PageCounters
    attention_pages: int | None
    caught: float | None
