"""Token counts of what a conversation's context consists of, by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.document_prompt import document_text, placeholder_passage
from app.ledger.context import ConversationContext
from app.ledger.records import attachment_key, message_key
from app.ledger.report import SYSTEM_KEY
from app.reading.records import placeholder_key
from app.store.records import Attachment, MessageState
from ui.token_counts import TokenCounts


class LedgerCounts:
    """Asks for what is not counted yet; what has the same key has the same words, so it is asked once."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts
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
        for key, text in self._unknown(context, system_prompt):
            count = self._counts.count(text)
            if count is not None:
                self._known[key] = count

    def _unknown(self, context: ConversationContext, system_prompt: str) -> Iterator[tuple[str, str]]:
        yield SYSTEM_KEY, system_prompt
        for message in context.path:
            key = message_key(message.id)
            if key not in self._known and message.state is not MessageState.STREAMING:
                yield key, message.text
            for attachment in message.attachments:
                yield from self._unknown_document(context, attachment)
            for reading in context.ways.readings(message.id):
                if reading.key not in self._known:
                    yield reading.key, reading.text

    def _unknown_document(
        self, context: ConversationContext, document: Attachment
    ) -> Iterator[tuple[str, str]]:
        """Yield a document as the model reads it: one that is not read whole may have millions of words."""
        key, short = attachment_key(document.id), placeholder_key(document.id)
        if context.ways.is_whole(key):
            if key not in self._known:
                yield key, document_text(document.title, document.text)
        elif short not in self._known:
            yield short, placeholder_passage(document.title, document.num_pages, short).text
