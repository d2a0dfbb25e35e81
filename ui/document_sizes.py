"""How large documents are; their words are counted once each on another thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from app.document_size import DocumentSize, num_words
from app.store.records import Attachment
from engine.cancel import CancelToken
from ui.background import BackgroundJob, Report
from ui.context_budget import ContextBudget

_Text = tuple[int, str | None]
"""An attachment's id and encoding: what names its text while it is a draft, too."""


class DocumentSizes(QObject):
    """Counts the words of documents and remembers how many: a text may be long, and is asked about often.

    Signals:
        changed: sizes that were asked for are known now.
    """

    changed = Signal()

    def __init__(self, budget: ContextBudget, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._budget = budget
        self._words: dict[_Text, int] = {}
        self._jobs: dict[_Text, BackgroundJob] = {}

    def tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of a document as the model reads it whole, None while they are not counted."""
        return self._budget.attachment_tokens(attachment)

    def size(self, attachment: Attachment) -> DocumentSize | None:
        """Return how large a document is; None while it is not counted, and `changed` may follow."""
        key = attachment.id, attachment.encoding
        if key not in self._words and key not in self._jobs:
            self._count(key, attachment.text)
        words, tokens = self._words.get(key), self.tokens(attachment)
        if words is None or tokens is None:
            return None
        return DocumentSize(attachment.num_pages, words, tokens)

    def stop(self) -> None:
        """Give up what is being counted."""
        for job in self._jobs.values():
            job.cancel()
        self._jobs.clear()

    def _count(self, key: _Text, text: str) -> None:
        def work(_cancel: CancelToken, _report: Report) -> int:
            return num_words(text)

        job = self._jobs[key] = BackgroundJob(work)
        job.done.connect(partial(self._on_words, key))
        job.start()

    def _on_words(self, key: _Text, words: int) -> None:
        if self._jobs.pop(key, None) is not None:
            self._words[key] = words
            self.changed.emit()
