"""Token counts of what a conversation's context consists of, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.document_prompt import placeholder_passage
from app.ledger.context import ConversationContext
from app.ledger.records import attachment_key, message_key
from app.ledger.report import SYSTEM_KEY
from app.reading.records import placeholder_key
from app.store.records import Attachment, MessageState
from ui.document_counts import DocumentCounts
from ui.token_counts import TokenCounts


class LedgerCounts:
    """Asks for what is not counted yet; what has the same key has the same words, so it is asked once."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = DocumentCounts(counts)
        self._known: dict[str, int] = {}

    @property
    def known(self) -> Mapping[str, int]:
        """What is counted so far."""
        return self._known

    def forget(self) -> None:
        """Count anew, with another model's tokenizer."""
        self._known.clear()

    def follow(self, context: ConversationContext, system_prompt: str) -> None:
        """Take over what is counted of a context, and ask for the rest of it."""
        self._known.pop(SYSTEM_KEY, None)
        for key, count in self._counted(context, system_prompt):
            if count is not None:
                self._known[key] = count

    def _counted(self, context: ConversationContext, system_prompt: str) -> Iterator[tuple[str, int | None]]:
        """Yield the tokens of what is not known yet, None while they are not counted."""
        yield SYSTEM_KEY, self._counts.text(system_prompt)
        for message in context.path:
            key = message_key(message.id)
            if key not in self._known and message.state is not MessageState.STREAMING:
                yield key, self._counts.text(message.text)
            for attachment in message.attachments:
                yield from self._counted_document(context, attachment)
            for reading in context.ways.written_readings(message.id):
                if reading.key not in self._known:
                    yield reading.key, self._counts.text(reading.text)

    def _counted_document(
        self, context: ConversationContext, document: Attachment
    ) -> Iterator[tuple[str, int | None]]:
        """Yield the tokens of a document as the model reads it, whole or as the line that names it."""
        key, short = attachment_key(document.id), placeholder_key(document.id)
        if context.ways.is_whole(key):
            if key not in self._known:
                yield key, self._counts.document(document)
        elif short not in self._known:
            line = placeholder_passage(document.title, document.num_pages, short)
            yield short, self._counts.text(line.text)
