"""Documents, notes and summaries in what a model reads: how they are written, found again, and replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.kv.page_map import SpanKind
from engine.model import ChatMessage, Role
from engine.spans import DocumentRange

_BETWEEN = "\n\n"
_END = "(End of the document.)"
_END_OF_SUMMARY = "(End of the summary.)"


class TitledText(Protocol):
    """A document or an attachment: what a model reads of it."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def text(self) -> str:
        """What is in it."""


@dataclass(frozen=True)
class Passage:
    """A document, or a summary, as a model reads it before the words of a message.

    Attributes:
        title: what it is called.
        text: its words, with those around it that say what it is.
        key: which item of the conversation it is, empty where that is not told.
        kind: what it is.
    """

    title: str
    text: str
    key: str = ""
    kind: SpanKind = SpanKind.DOCUMENT


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


def document_passage(document: TitledText, key: str = "") -> Passage:
    """Return a document as the model reads it."""
    return Passage(document.title, document_text(document.title, document.text), key)


def placeholder_passage(title: str, num_pages: int | None, key: str) -> Passage:
    """Return the line that names a document which is not read whole."""
    pages = "" if num_pages is None else f", {num_pages:,} page{'' if num_pages == 1 else 's'}"
    text = f"(Attached document: {title}{pages}. It is too long to be given here whole.)"
    return Passage(title, text, key, SpanKind.NOTES)


def notes_passage(title: str, text: str, key: str) -> Passage:
    """Return what was read of a document for a question, in its own words."""
    return Passage(title, text, key, SpanKind.NOTES)


def summary_passage(title: str, about: str, text: str, key: str) -> Passage:
    """Return a summary as the model reads it.

    Args:
        title: what it is called, for people.
        about: what it is a summary of, for the model, as `the earlier conversation`.
        text: its words.
        key: its key.
    """
    written = _BETWEEN.join([f"Summary of {about}:", text.strip(), _END_OF_SUMMARY])
    return Passage(title, written, key, SpanKind.SUMMARY)


def left_out_text(titles: Sequence[str]) -> str:
    """Return what the model reads for a message that has no words but documents that are left out."""
    return f"(Left out here: {', '.join(titles)}.)"


def chat_message(role: Role, text: str, passages: Sequence[Passage] = (), key: str = "") -> ChatMessage:
    """Return a message as the model reads it: its passages first, so that they stay a shared prefix."""
    ranges, start = [], 0
    for passage in passages:
        stop = start + len(passage.text)
        ranges.append(DocumentRange(passage.title, start, stop, passage.key, passage.kind))
        start = stop + len(_BETWEEN)
    parts = [passage.text for passage in passages]
    return ChatMessage(role, _BETWEEN.join([*parts, text] if text else parts), tuple(ranges), key)


def placed_documents(messages: Sequence[ChatMessage]) -> tuple[PlacedDocument, ...]:
    """Return the documents of a conversation that are read whole, in order."""
    return tuple(
        PlacedDocument(index, each, words_inside(each, message.content))
        for index, message in enumerate(messages)
        for each in message.documents
        if each.kind is SpanKind.DOCUMENT
    )


def words_inside(document: DocumentRange, content: str) -> str:
    """Return the words of a document or a summary in a message, without those that say what it is.

    Notes have none.
    """
    written = content[document.start : document.stop]
    if document.kind is SpanKind.SUMMARY:
        return written.partition(_BETWEEN)[2].removesuffix(_BETWEEN + _END_OF_SUMMARY)
    if document.kind is SpanKind.NOTES:
        return written
    return written.removeprefix(_head(document.title) + _BETWEEN).removesuffix(_BETWEEN + _END)


def without_documents(content: str, documents: Sequence[DocumentRange]) -> str:
    """Return the words of a message beside its documents and summaries."""
    for document in reversed(documents):
        content = content[: document.start] + content[document.stop :]
    return content.strip()


def replaced(messages: Sequence[ChatMessage], texts: Mapping[PlacedDocument, str]) -> tuple[ChatMessage, ...]:
    """Return a conversation in which some documents are written in other words, frame included.

    These lose their keys, which promise the words.
    """
    return tuple(_replaced_in(message, index, texts) for index, message in enumerate(messages))


def _replaced_in(message: ChatMessage, index: int, texts: Mapping[PlacedDocument, str]) -> ChatMessage:
    instead = {document.range: text for document, text in texts.items() if document.message == index}
    content, ranges, end = "", [], 0
    for each in message.documents:
        content += message.content[end : each.start]
        written = instead.get(each, message.content[each.start : each.stop])
        key = "" if each in instead else each.key
        ranges.append(DocumentRange(each.title, len(content), len(content) + len(written), key, each.kind))
        content, end = content + written, each.stop
    return dataclasses.replace(message, content=content + message.content[end:], documents=tuple(ranges))


def with_documents_first(message: ChatMessage, documents: Sequence[tuple[str, str]]) -> ChatMessage:
    """Return a message with more documents before its own: titles, and what is written for them.

    Summaries at its head stay there.
    """
    own = message.documents
    is_document = [each.kind is not SpanKind.SUMMARY for each in own]
    num_summaries = is_document.index(True) if any(is_document) else len(own)
    head = own[num_summaries - 1].stop if num_summaries else 0
    before, behind = (_BETWEEN, "") if num_summaries else ("", _BETWEEN)
    written, ranges = "", []
    for title, text in documents:
        start = head + len(written) + len(before)
        ranges.append(DocumentRange(title, start, start + len(text)))
        written += before + text + behind
    shifted = [
        dataclasses.replace(each, start=each.start + len(written), stop=each.stop + len(written))
        for each in own[num_summaries:]
    ]
    content = message.content[:head] + written + message.content[head:]
    return dataclasses.replace(message, content=content, documents=(*own[:num_summaries], *ranges, *shifted))
