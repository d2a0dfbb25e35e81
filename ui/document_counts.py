"""The tokens of texts and of documents; a document is looked at once, however long it is."""

from __future__ import annotations

from app.document_prompt import document_text
from app.document_size import COUNTED_CHARS, scaled, stretches
from app.store.records import Attachment
from engine.tokens import TokenCounter
from ui.token_counts import TokenCounts

_Text = tuple[int, str | None, int]
"""An attachment's id, encoding and length: what names its text while it is a draft, too."""


class DocumentCounts:
    """Counts with the loaded model's tokenizer, in the background."""

    def __init__(self, counts: TokenCounts) -> None:
        self._counts = counts
        self._counter: TokenCounter | None = None
        self._known: dict[_Text, int] = {}
        self._counted: dict[_Text, tuple[str, tuple[str, ...]]] = {}

    @property
    def available(self) -> bool:
        """Whether there is a tokenizer to count with."""
        return self._counts.available

    def text(self, text: str) -> int | None:
        """Return the tokens of a text, None while they are not counted."""
        return self._counts.count(text)

    def document(self, attachment: Attachment) -> int | None:
        """Return about the tokens of a document as the model reads it whole, None while it is not counted.

        Of one that is longer than any context, some stretches are counted.
        """
        if self._counter is not self._counts.counter:
            self._counter = self._counts.counter
            self._known.clear()
        key = attachment.id, attachment.encoding, len(attachment.text)
        if key not in self._known:
            counts = [self._counts.count(each) for each in self._stretches(key, attachment)]
            if None in counts:
                return None
            text, _ = self._counted.pop(key)
            self._known[key] = scaled(sum(count or 0 for count in counts), text)
        return self._known[key]

    def _stretches(self, key: _Text, attachment: Attachment) -> tuple[str, ...]:
        """Return what is counted of a document; kept while it is, since it takes a moment to write."""
        if key not in self._counted:
            text = attachment.text
            if len(text) <= COUNTED_CHARS:  # beside a longer one, the words around it do not count
                text = document_text(attachment.title, text)
            self._counted[key] = text, stretches(text)
        return self._counted[key][1]
