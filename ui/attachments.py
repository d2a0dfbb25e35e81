"""The documents beside the message that is being written: read off the UI thread, kept in the store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.documents.cleaning import clean_text
from app.documents.document import Document
from app.documents.extract import extract
from app.store.conversations import ConversationStore
from app.store.records import Attachment
from engine.cancel import CancelToken
from engine.errors import OctavoError, sentence_of
from ui.background import BackgroundJob, Report
from ui.chat.attachments import AttachmentChip, ChipState, size_text, tip_text
from ui.token_counts import TokenCounts

_NO_FILE = Path()
"""Where pasted text comes from."""


@dataclass(eq=False)
class _Draft:
    """One document of one conversation's draft: being read, read, or failed."""

    key: int
    path: Path
    attachment: Attachment | None = None
    job: BackgroundJob | None = None
    progress: tuple[int, int] | None = None
    note: str = ""
    error: str | None = None
    encoding: str | None = None


class DraftAttachments(QObject):
    """Reads documents for the open conversation's draft; reading goes on while another one is open.

    Signals:
        changed: the open conversation's documents changed.
        failed: an unexpected exception of a reader or the store, or why reading again did not work.
    """

    changed = Signal()
    failed = Signal(object)

    def __init__(self, store: ConversationStore, counts: TokenCounts, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._counts = counts
        self._keys = itertools.count(1)
        self._drafts: dict[int, list[_Draft]] = {}
        self._conversation_id: int | None = None

    def open(self, conversation_id: int) -> None:
        """Turn to the draft of another conversation."""
        self._conversation_id = conversation_id
        if conversation_id not in self._drafts:
            self._drafts[conversation_id] = [
                _Draft(next(self._keys), Path(attachment.source), attachment)
                for attachment in self._store.draft_attachments(conversation_id)
            ]
        self.changed.emit()

    def forget(self, conversation_id: int) -> None:
        """Stop reading for a conversation that is deleted."""
        for draft in self._drafts.pop(conversation_id, []):
            if draft.job is not None:
                draft.job.cancel()

    def add(self, paths: Iterable[Path]) -> None:
        """Read files into the open conversation's draft; one that is there already is left alone."""
        if self._conversation_id is None:
            return
        drafts = self._drafts[self._conversation_id]
        for path in paths:
            drafts[:] = [draft for draft in drafts if draft.path != path or draft.error is None]
            if all(draft.path != path for draft in drafts):
                draft = _Draft(next(self._keys), path)
                drafts.append(draft)
                self._read(self._conversation_id, draft)
        self.changed.emit()

    def add_text(self, text: str) -> None:
        """Take a text that was pasted as a document of the open conversation's draft."""
        if self._conversation_id is None:
            return
        drafts = self._drafts[self._conversation_id]
        num_pasted = sum(draft.path == _NO_FILE for draft in drafts)
        title = f"Pasted text {num_pasted + 1}" if num_pasted else "Pasted text"
        draft = _Draft(next(self._keys), _NO_FILE)
        drafts.append(draft)
        self._take_document(self._conversation_id, draft, Document(title, "", "text", clean_text(text)))

    def remove(self, key: int) -> None:
        """Take a document out of the draft, or stop reading it."""
        draft = self._find(key)
        if draft is None or self._conversation_id is None:
            return
        if draft.job is not None:
            draft.job.cancel()
        if draft.attachment is not None:
            self._store.remove_attachment(draft.attachment.id)
        self._drafts[self._conversation_id].remove(draft)
        self.changed.emit()

    def set_encoding(self, key: int, encoding: str) -> None:
        """Read a text again in another encoding."""
        draft = self._find(key)
        if draft is not None and draft.job is None and self._conversation_id is not None:
            draft.encoding = encoding
            draft.error = None
            self._read(self._conversation_id, draft)
            self.changed.emit()

    def taken(self) -> None:
        """Forget the open draft's documents: they were sent."""
        if self._conversation_id is not None:
            self._drafts[self._conversation_id] = []
            self.changed.emit()

    @property
    def attachments(self) -> list[Attachment]:
        """The documents that are read, in order."""
        return [draft.attachment for draft in self._open_drafts() if draft.attachment is not None]

    @property
    def is_reading(self) -> bool:
        """Whether a document of the open draft is still being read."""
        return any(draft.job is not None for draft in self._open_drafts())

    @property
    def failed_title(self) -> str:
        """The first document of the open draft that could not be read or kept; empty where there is none."""
        return next((_title(draft) for draft in self._open_drafts() if draft.error is not None), "")

    def chips(self, tokens_of: Callable[[Attachment], int | None]) -> list[AttachmentChip]:
        """Return what the composer shows; `tokens_of` counts a document."""
        return [_chip(draft, tokens_of) for draft in self._open_drafts()]

    def stop(self) -> None:
        """Stop all reading."""
        for conversation_id in list(self._drafts):
            self.forget(conversation_id)

    def _open_drafts(self) -> list[_Draft]:
        return self._drafts.get(self._conversation_id or 0, [])

    def _find(self, key: int) -> _Draft | None:
        return next((draft for draft in self._open_drafts() if draft.key == key), None)

    def _read(self, conversation_id: int, draft: _Draft) -> None:
        path, encoding = draft.path, draft.encoding

        def work(cancel: CancelToken, report: Report) -> Document:
            return extract(
                path,
                encoding=encoding,
                cancel=cancel,
                on_progress=lambda done, total: report((done, total)),
            )

        draft.job = BackgroundJob(work)
        draft.progress = None
        draft.job.progress.connect(partial(self._take_progress, conversation_id, draft))
        draft.job.done.connect(partial(self._take_document, conversation_id, draft))
        draft.job.failed.connect(partial(self._take_error, conversation_id, draft))
        draft.job.start()

    def _take_document(self, conversation_id: int, draft: _Draft, document: Document) -> None:
        draft.job = None
        if draft not in self._drafts.get(conversation_id, []):
            return
        try:
            if draft.attachment is None:
                draft.attachment = self._store.add_attachment(conversation_id, document)
            else:
                draft.attachment = self._store.update_attachment(draft.attachment.id, document)
        except OctavoError as error:
            draft.error = str(error)
        if document.num_textless_pages:
            draft.note = f"{document.num_textless_pages} without text"
        self.changed.emit()

    def _take_error(self, conversation_id: int, draft: _Draft, error: Exception) -> None:
        draft.job = None
        if draft not in self._drafts.get(conversation_id, []):
            return
        if draft.attachment is None:
            draft.error = sentence_of(error)
        else:  # reading it again failed: the text that is there stays
            draft.encoding = None
        if draft.attachment is not None or not isinstance(error, OctavoError):
            self.failed.emit(error)
        self.changed.emit()

    def _take_progress(self, conversation_id: int, draft: _Draft, progress: tuple[int, int]) -> None:
        if draft in self._drafts.get(conversation_id, []):
            draft.progress = progress
            self.changed.emit()


def _title(draft: _Draft) -> str:
    return draft.attachment.title if draft.attachment is not None else draft.path.name or "Pasted text"


def _chip(draft: _Draft, tokens_of: Callable[[Attachment], int | None]) -> AttachmentChip:
    attachment = draft.attachment
    title = _title(draft)
    if draft.job is not None:
        return AttachmentChip(draft.key, title, "Reading…", ChipState.READING, draft.progress)
    if draft.error is not None or attachment is None:
        return AttachmentChip(
            draft.key, title, "", ChipState.FAILED, error=draft.error, encoding=draft.encoding
        )
    detail = size_text(attachment, note=draft.note, tokens=tokens_of(attachment))
    if attachment.encoding is not None and attachment.encoding_guessed:
        detail += f" · {attachment.encoding}, guessed"
    return AttachmentChip(
        draft.key, title, detail, ChipState.READY, encoding=attachment.encoding, tip=tip_text(attachment)
    )
