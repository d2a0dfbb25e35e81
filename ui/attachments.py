"""The documents beside the message that is being written: read off the UI thread, kept in the store."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QThreadPool, QTimer, Signal

from app.documents.cleaning import clean_text
from app.documents.document import Document
from app.documents.extract import extract
from app.documents.folder import FolderDocuments, folder_documents
from app.store.conversations import ConversationStore
from app.store.records import Attachment
from engine.cancel import CancelToken
from engine.errors import OctavoError, sentence_of
from ui.background import BackgroundJob, Report
from ui.chat.attachments import AttachmentChip
from ui.chat.drop import FileData
from ui.draft_document import NO_FILE, DraftDocument, ReadingWords
from ui.kept_files import KeptFiles

_NUM_THREADS = 2
_TELL_MS = 30
"""Documents that come in quick succession are told together: each time, all that is shown is made anew."""


class DraftAttachments(QObject):
    """Reads documents for the open conversation's draft; reading goes on while another one is open.

    Signals:
        changed: the open conversation's documents changed.
        failed: an unexpected exception of a reader or the store, or why reading again did not work.
        folder_attached: what was taken of a folder, and what not, in a sentence or two.
    """

    changed = Signal()
    failed = Signal(object)
    folder_attached = Signal(str)

    def __init__(self, store: ConversationStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._keys = itertools.count(1)
        self._drafts: dict[int, list[DraftDocument]] = {}
        self._conversation_id: int | None = None
        self._kept = KeptFiles()
        # Of its own: a folder on a drive that does not answer must not keep other work waiting.
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(_NUM_THREADS)
        self._telling = QTimer(self, singleShot=True, interval=_TELL_MS)
        self._telling.timeout.connect(self.changed)

    def open(self, conversation_id: int) -> None:
        """Turn to the draft of another conversation."""
        self._conversation_id = conversation_id
        if conversation_id not in self._drafts:
            self._drafts[conversation_id] = [
                DraftDocument(next(self._keys), Path(each.source), Path(each.source), attachment=each)
                for each in self._store.draft_attachments(conversation_id)
            ]
        self.changed.emit()

    def forget(self, conversation_id: int) -> None:
        """Stop reading for a conversation that is deleted."""
        for draft in self._drafts.pop(conversation_id, []):
            if draft.job is not None:
                draft.job.cancel()
            self._kept.let_go(draft.kept)

    def add(self, paths: Iterable[Path]) -> None:
        """Read files and folders into the open conversation's draft; one that is there is left alone."""
        if self._conversation_id is None:
            return
        for path in paths:
            self._add(self._conversation_id, path, "")
        self.changed.emit()

    def add_data(self, data: FileData) -> None:
        """Read a document that another program handed over without a file."""
        try:
            path = self._kept.written(data)
        except OSError as error:
            self.failed.emit(
                OctavoError(f"What was dropped could not be saved to be read ({error.strerror}).")
            )
        else:
            self.add([path])

    def add_text(self, text: str) -> None:
        """Take a text that was pasted as a document of the open conversation's draft."""
        if self._conversation_id is None:
            return
        drafts = self._drafts[self._conversation_id]
        num_pasted = sum(draft.path == NO_FILE for draft in drafts)
        title = f"Pasted text {num_pasted + 1}" if num_pasted else "Pasted text"
        draft = DraftDocument(next(self._keys), NO_FILE)
        drafts.append(draft)
        self._take(self._conversation_id, draft, Document(title, "", "text", clean_text(text)))
        self.changed.emit()

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
        self._kept.let_go(draft.kept)
        self.changed.emit()

    def take_text(self, key: int) -> str:
        """Take a text that was pasted out of the draft again, and return it; empty where it is gone."""
        draft = self._find(key)
        text = draft.attachment.text if draft is not None and draft.attachment is not None else ""
        self.remove(key)
        return text

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
            for draft in self._drafts[self._conversation_id]:
                self._kept.let_go(draft.kept)
            self._drafts[self._conversation_id] = []
            self.changed.emit()

    @property
    def attachments(self) -> list[Attachment]:
        """The documents that are read, in order."""
        return [draft.attachment for draft in self._open_drafts() if draft.attachment is not None]

    @property
    def leading(self) -> list[Attachment]:
        """The documents before the first one that is still being read, in order."""
        ready = itertools.takewhile(lambda draft: draft.job is None, self._open_drafts())
        return [draft.attachment for draft in ready if draft.attachment is not None]

    @property
    def is_reading(self) -> bool:
        """Whether a document of the open draft is still being read."""
        return any(draft.job is not None for draft in self._open_drafts())

    @property
    def failed_title(self) -> str:
        """The first document of the open draft that could not be read or kept; empty where there is none."""
        return next((draft.shown_title for draft in self._open_drafts() if draft.error is not None), "")

    def chips(self, reading: ReadingWords) -> list[AttachmentChip]:
        """Return what the composer shows; `reading` tells how documents are read."""
        return [draft.chip(reading) for draft in self._open_drafts()]

    def stop(self) -> None:
        """Stop all reading."""
        for conversation_id in list(self._drafts):
            self.forget(conversation_id)
        self._telling.stop()
        self._kept.clear()

    def _open_drafts(self) -> list[DraftDocument]:
        return self._drafts.get(self._conversation_id or 0, [])

    def _find(self, key: int) -> DraftDocument | None:
        return next((draft for draft in self._open_drafts() if draft.key == key), None)

    def _add(self, conversation_id: int, path: Path, title: str) -> None:
        drafts = self._drafts[conversation_id]
        drafts[:] = [draft for draft in drafts if draft.path != path or draft.error is None]
        if all(draft.path != path for draft in drafts):
            draft = DraftDocument(next(self._keys), path, self._kept.kept(path), title)
            drafts.append(draft)
            self._read(conversation_id, draft)

    def _read(self, conversation_id: int, draft: DraftDocument) -> None:
        path, encoding = draft.kept, draft.encoding

        def work(cancel: CancelToken, report: Report) -> Document | FolderDocuments:
            if path.is_dir():  # here, as even this may take long
                return folder_documents(path, cancel)
            return extract(
                path,
                encoding=encoding,
                cancel=cancel,
                on_progress=lambda done, total: report((done, total)),
            )

        draft.job = BackgroundJob(work)
        draft.progress = None
        draft.job.progress.connect(partial(self._take_progress, conversation_id, draft))
        draft.job.done.connect(partial(self._take_result, conversation_id, draft))
        draft.job.failed.connect(partial(self._take_error, conversation_id, draft))
        draft.job.start(self._pool)

    def _take_result(
        self, conversation_id: int, draft: DraftDocument, result: Document | FolderDocuments
    ) -> None:
        draft.job = None
        if draft not in self._drafts.get(conversation_id, []):
            return
        if isinstance(result, FolderDocuments):
            self._take_folder(conversation_id, draft, result)
        else:
            title, source = draft.title or result.title, str(draft.path)
            self._take(conversation_id, draft, dataclasses.replace(result, title=title, source=source))
        self._tell_soon()

    def _take_folder(self, conversation_id: int, draft: DraftDocument, folder: FolderDocuments) -> None:
        """Put the documents of a folder in its place, and say what is left out."""
        self._drafts[conversation_id].remove(draft)
        for file in folder.files:
            self._add(conversation_id, file.path, file.title)
        if folder.left_out:
            self.folder_attached.emit(folder.summary)

    def _take(self, conversation_id: int, draft: DraftDocument, document: Document) -> None:
        """Keep the text of a document."""
        try:
            if draft.attachment is None:
                draft.take(self._store.add_attachment(conversation_id, document))
            else:
                draft.take(self._store.update_attachment(draft.attachment.id, document))
        except OctavoError as error:
            draft.error = str(error)

    def _take_error(self, conversation_id: int, draft: DraftDocument, error: Exception) -> None:
        draft.job = None
        if draft not in self._drafts.get(conversation_id, []):
            return
        if draft.attachment is None:
            draft.error = sentence_of(error)
        else:  # reading it again failed: the text that is there stays
            draft.encoding = None
        if draft.attachment is not None or not isinstance(error, OctavoError):
            self.failed.emit(error)
        self._tell_soon()

    def _take_progress(self, conversation_id: int, draft: DraftDocument, progress: tuple[int, int]) -> None:
        if draft in self._drafts.get(conversation_id, []):
            draft.progress = progress
            self._tell_soon()

    def _tell_soon(self) -> None:
        """Tell that something changed: at once where nothing more is read, else soon."""
        if not self.is_reading:
            self._telling.stop()
            self.changed.emit()
        elif not self._telling.isActive():  # else it would never be told while more comes
            self._telling.start()
