"""Documents in what a model reads: how they are written, found again, and replaced by something shorter."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.model import ChatMessage
from engine.spans import DocumentRange

_BETWEEN = "\n\n"
_END = "(End of the document.)"


class TitledText(Protocol):
    """A document or an attachment: what a model reads of it."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def text(self) -> str:
        """What is in it."""


@dataclass(frozen=True)
class PlacedDocument:
    """A document in a conversation.

    Attributes:
        message: index of the message that it belongs to.
        range: where it stands in that message.
        text: what is in it.
    """

    message: int
    range: DocumentRange
    text: str

    @property
    def title(self) -> str:
        """What it is called."""
        return self.range.title


def document_text(title: str, text: str) -> str:
    """Return what the model reads for a document."""
    return _BETWEEN.join([_head(title), text.strip(), _END])


def _head(title: str) -> str:
    return f"Document: {title}"


def message_text(text: str, documents: Sequence[TitledText]) -> str:
    """Return what the model reads for a message: its documents first, so that they stay a shared prefix."""
    parts = [document_text(document.title, document.text) for document in documents]
    return _BETWEEN.join([*parts, text] if text else parts)


def document_ranges(documents: Sequence[TitledText]) -> tuple[DocumentRange, ...]:
    """Return where the documents of a message stand in its `message_text`."""
    ranges, start = [], 0
    for document in documents:
        stop = start + len(document_text(document.title, document.text))
        ranges.append(DocumentRange(document.title, start, stop))
        start = stop + len(_BETWEEN)
    return tuple(ranges)


def placed_documents(messages: Sequence[ChatMessage]) -> tuple[PlacedDocument, ...]:
    """Return the documents of a conversation, in order."""
    return tuple(
        PlacedDocument(index, each, _text_of(each, message.content[each.start : each.stop]))
        for index, message in enumerate(messages)
        for each in message.documents
    )


def _text_of(document: DocumentRange, written: str) -> str:
    """Return the text that `document_text` wrote."""
    return written.removeprefix(_head(document.title) + _BETWEEN).removesuffix(_BETWEEN + _END)


def without_documents(content: str, documents: Sequence[DocumentRange]) -> str:
    """Return the words of a message beside its documents."""
    for document in reversed(documents):
        content = content[: document.start] + content[document.stop :]
    return content.strip()


def replaced(messages: Sequence[ChatMessage], texts: Mapping[PlacedDocument, str]) -> tuple[ChatMessage, ...]:
    """Return a conversation in which some documents are written in other words, frame included."""
    return tuple(_replaced_in(message, index, texts) for index, message in enumerate(messages))


def _replaced_in(message: ChatMessage, index: int, texts: Mapping[PlacedDocument, str]) -> ChatMessage:
    instead = {document.range: text for document, text in texts.items() if document.message == index}
    content, ranges, end = "", [], 0
    for document in message.documents:
        content += message.content[end : document.start]
        written = instead.get(document, message.content[document.start : document.stop])
        ranges.append(DocumentRange(document.title, len(content), len(content) + len(written)))
        content, end = content + written, document.stop
    return dataclasses.replace(message, content=content + message.content[end:], documents=tuple(ranges))


def with_documents_first(message: ChatMessage, documents: Sequence[tuple[str, str]]) -> ChatMessage:
    """Return a message with more documents before its own: titles, and what is written for them."""
    content, ranges = "", []
    for title, written in documents:
        ranges.append(DocumentRange(title, len(content), len(content) + len(written)))
        content += written + _BETWEEN
    shift = len(content)
    own = [DocumentRange(each.title, each.start + shift, each.stop + shift) for each in message.documents]
    return dataclasses.replace(message, content=content + message.content, documents=(*ranges, *own))
