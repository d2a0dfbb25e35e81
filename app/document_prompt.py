"""Documents, notes and summaries in what a model reads: how they are written and found again."""

from __future__ import annotations

from collections.abc import Sequence
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


def document_text(title: str, text: str) -> str:
    """Return what the model reads for a document."""
    return _BETWEEN.join([_head(title), text.strip(), _END])


def _head(title: str) -> str:
    return f"Document: {title}"


def place_inside(document: TitledText, start: int, stop: int) -> tuple[int, int] | None:
    """Return which characters of a document's text some are of what is written of it; None for none."""
    shift = len(_head(document.title)) + len(_BETWEEN)
    before = len(document.text) - len(document.text.lstrip())
    last = before + len(document.text.strip())
    first, end = (min(max(at - shift + before, before), last) for at in (start, stop))
    return (first, end) if first < end else None


def document_passage(document: TitledText, key: str = "") -> Passage:
    """Return a document as the model reads it."""
    return Passage(document.title, document_text(document.title, document.text), key)


def placeholder_passage(title: str, num_pages: int | None, key: str) -> Passage:
    """Return the line that names a document which is not read whole."""
    pages = "" if num_pages is None else f", {num_pages:,} page{'' if num_pages == 1 else 's'}"
    text = f"(Attached, in parts: {title}{pages}.)"
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
