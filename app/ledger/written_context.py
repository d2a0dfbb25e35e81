"""A context in the words that a model reads.

The words around a summary are always the same, as its key promises, and so is the line that names a document
which is not read whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.document_prompt import (
    Passage,
    chat_message,
    document_passage,
    left_out_text,
    notes_passage,
    placeholder_passage,
    summary_passage,
)
from app.ledger.records import Summary, attachment_key, message_key
from app.ledger.standing import PathItems, Standing
from app.ledger.ways import DocumentWays
from app.reading.records import placeholder_key
from app.store.records import Attachment, Message
from engine.model import ChatMessage


def written_summary(summary: Summary, items: PathItems) -> Passage:
    """Return a summary of what is on a path as the model reads it."""
    title = summary_title(summary, items)
    titles = [items.documents[key].title for key in summary.covers if key in items.documents]
    if _turns_of(summary, items):
        about = "the earlier conversation"
    else:
        about = f"the document{'s' if len(titles) > 1 else ''} {', '.join(titles)}"
    return summary_passage(title, about, summary.text, summary.key)


def summary_title(summary: Summary, items: PathItems) -> str:
    """Return what a summary of what is on a path is called, for people."""
    num_turns = len(_turns_of(summary, items))
    if num_turns:
        return f"Summary of {num_turns:,} turn{'s' if num_turns > 1 else ''}"
    return f"Summary of {', '.join(items.documents[key].title for key in summary.covers)}"


def _turns_of(summary: Summary, items: PathItems) -> set[int]:
    return {items.turn_of[key] for key in summary.covers if key not in items.documents}


def written_messages(items: PathItems, standing: Standing, ways: DocumentWays) -> Iterator[ChatMessage]:
    """Yield what the model reads of a path.

    A summary stands at the head of the first read turn behind it. Before the words of a message stand its
    documents, and then what was read for it of documents that are not read whole.
    """
    ends = _ends(standing)
    heads: list[Passage] = []
    documents = _Documents(items, standing, ways)
    for index, turn in enumerate(items.turns):
        if index in ends:
            heads.append(written_summary(ends[index], items))
        if index in standing.turn_summaries or index in standing.dropped_turns:
            continue
        for message in turn:
            passages = list(documents.of(message))
            text = message.text or ("" if passages or not message.attachments else _left_out(message))
            yield chat_message(message.role.value, text, [*heads, *passages], message_key(message.id))
            heads = []


def _ends(standing: Standing) -> dict[int, Summary]:
    """Return each summary by the last turn that it stands for, in order."""
    last: dict[Summary, int] = {}
    for index, summary in standing.turn_summaries.items():
        last[summary] = max(index, last.get(summary, index))
    return dict(sorted((index, summary) for summary, index in last.items()))


def _left_out(message: Message) -> str:
    return left_out_text([each.title for each in message.attachments])


class _Documents:
    """Writes the documents of messages; a summary of several once, in the place of the first."""

    def __init__(self, items: PathItems, standing: Standing, ways: DocumentWays) -> None:
        self._items = items
        self._standing = standing
        self._ways = ways
        self._written: set[Summary] = set()

    def of(self, message: Message) -> Iterator[Passage]:
        """Yield the documents of a message that are read, or what stands for them, and its readings."""
        for document in message.attachments:
            key = attachment_key(document.id)
            summary = self._standing.document_summaries.get(key)
            if summary is None and key not in self._standing.dropped_documents:
                yield self._passage(document, key)
            elif summary is not None and summary not in self._written:
                self._written.add(summary)
                yield written_summary(summary, self._items)
        for reading in self._ways.written_readings(message.id):
            document = self._items.documents[attachment_key(reading.attachment_id)]
            yield notes_passage(document.title, reading.text, reading.key)

    def _passage(self, document: Attachment, key: str) -> Passage:
        if self._ways.is_whole(key):
            return document_passage(document, key)
        return placeholder_passage(document.title, document.num_pages, placeholder_key(document.id))
