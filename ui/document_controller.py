"""What happens between the documents of a draft, those that were sent, and the field they stand in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.ledger.records import attachment_key
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from ui.attachments import DraftAttachments
from ui.chat.asked_documents import AskedDocument
from ui.chat.attachments import ShownWays
from ui.chat.composer import Composer
from ui.chat.drop import DropOverlay, FileData
from ui.chat.view import ChatView
from ui.context_budget import ContextBudget
from ui.context_use import ContextUse
from ui.conversation_session import ConversationSession
from ui.document_reading import DocumentReading
from ui.document_sizes import DocumentSizes
from ui.engine_thread import EngineThread
from ui.notifications import Notifications


class DocumentController(QObject):
    """Takes documents from whoever has them, and shows what they cost and how they are read.

    Attributes:
        reading: how they are read.

    Signals:
        changed: ways, costs or the reading ahead changed.
        text_wanted: the extracted text of a document is to be shown; its attachment's id.
    """

    changed = Signal()
    text_wanted = Signal(int)

    def __init__(
        self,
        store: ConversationStore,
        engine: EngineThread,
        session: ConversationSession,
        drafts: DraftAttachments,
        budget: ContextBudget,
        settings: Callable[[], ReplySettings],
        notifications: Notifications,
        view: ChatView,
        composer: Composer,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._drafts = drafts
        self._view = view
        self._composer = composer
        self._sizes = DocumentSizes(budget, self)
        self.reading = DocumentReading(store, engine, session, drafts, self._sizes, settings, self)
        self.reading.changed.connect(self.changed)
        drafts.failed.connect(lambda error: notifications.error("A document could not be read", error))
        drafts.folder_attached.connect(lambda words: notifications.info("A folder was attached", words))
        self._connect(composer, view)

    def _connect(self, composer: Composer, view: ChatView) -> None:
        composer.files_dropped.connect(self.add_files)
        composer.long_text_pasted.connect(self._drafts.add_text)
        composer.attachment_removed.connect(self._drafts.remove)
        composer.encoding_changed.connect(self._drafts.set_encoding)
        composer.as_text_wanted.connect(self._put_into_message)
        for source in (composer, view):
            source.way_chosen.connect(self.reading.choose)
            source.text_wanted.connect(self.text_wanted)

    def add_files(self, paths: Sequence[Path]) -> None:
        """Read files and folders into the draft."""
        self._drafts.add(paths)
        self._composer.setFocus()

    def add_data(self, data: FileData) -> None:
        """Read a document into the draft that came without a file."""
        self._drafts.add_data(data)
        self._composer.setFocus()

    def take_drops(self, overlay: DropOverlay) -> None:
        """Take what is dropped on the window."""
        overlay.dropped.connect(self.add_files)
        overlay.data_dropped.connect(self.add_data)
        overlay.text_dropped.connect(self._composer.take_text)
        overlay.refused.connect(self._composer.refuse)

    def show(self, use: ContextUse) -> None:
        """Show what documents cost beside all else that the next prompt has, and how they are read."""
        self.reading.refresh(use)
        self._composer.set_attachments(self._drafts.chips(self.reading))
        self._composer.set_asked_documents(
            [
                AskedDocument(each.id, each.title, way, self.reading.cost(each))
                for each, way in self.reading.sent()
            ]
        )
        self._view.show_ways(self._ways())

    def stop(self) -> None:
        """Stop what is being extracted or counted."""
        self._drafts.stop()
        self._sizes.stop()

    def _ways(self) -> dict[int, ShownWays]:
        """Return how the documents of the path were read and will be, by the attachment's id."""
        context = self._session.context
        keys = {each.id: attachment_key(each.id) for message in context.path for each in message.attachments}
        return {
            number: ShownWays(context.ways.told_way(key), context.way(key)) for number, key in keys.items()
        }

    def _put_into_message(self, key: int) -> None:
        """Take back that a text which was pasted became a document."""
        if text := self._drafts.take_text(key):
            self._composer.insert_text(text)
