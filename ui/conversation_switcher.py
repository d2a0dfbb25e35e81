"""Which conversation is open: opening one, beginning one, deleting one and bringing it back."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError
from app.store.records import Conversation
from ui.attachments import DraftAttachments
from ui.conversation_session import ConversationSession
from ui.engine_thread import EngineThread
from ui.profiles.current import CurrentProfile
from ui.reply_stream import ReplyStream


class ConversationSwitcher(QObject):
    """Opens conversations in the session; what is being written in the one before is saved first.

    Signals:
        list_changed: a conversation came or went.
    """

    list_changed = Signal()

    def __init__(
        self,
        store: ConversationStore,
        engine: EngineThread,
        session: ConversationSession,
        stream: ReplyStream,
        attachments: DraftAttachments,
        profile: CurrentProfile,
        field: QWidget,
        parent: QObject | None = None,
    ) -> None:
        """Make one that gives the focus to `field`, where messages are written."""
        super().__init__(parent)
        self._store = store
        self._engine = engine
        self._session = session
        self._stream = stream
        self._attachments = attachments
        self._profile = profile
        self._field = field
        self._deleted: list[int] = []

    def open(self, conversation_id: int) -> None:
        """Show a conversation."""
        if conversation_id != self._session.conversation_id:
            self._session.open(conversation_id)
            self._engine.opened(conversation_id)

    def open_newest(self) -> None:
        """Show the conversation that changed last, or a new one."""
        conversations = self._store.conversations()
        if conversations:
            self.open(max(conversations, key=lambda conversation: conversation.updated_at).id)
        else:
            self.new()

    def open_busy(self) -> None:
        """Show the conversation in which a reply is being written, if there is one."""
        if self._stream.conversation_id is not None:
            self.open(self._stream.conversation_id)

    def new(self) -> None:
        """Show an empty conversation: one that is still unused, or a new one."""
        self._session.save_draft()
        unused = next(filter(self._is_unused, self._store.conversations()), None)
        if unused is not None and unused.id != self._session.conversation_id:
            self._store.set_profile(unused.id, None)  # it takes the default, as a new one does
        conversation = unused or self._store.create_conversation()
        self.list_changed.emit()
        self.open(conversation.id)
        self._field.setFocus()

    def delete(self, conversation_id: int) -> str:
        """Delete a conversation, stopping its reply first, and return its title."""
        if self._stream.conversation_id == conversation_id:
            self._stream.stop()
        title = self._store.conversation(conversation_id).title
        is_open = self._session.conversation_id == conversation_id
        if is_open:
            self._session.save_draft()
            self._profile.save()
        self._store.delete(conversation_id)
        self._engine.forget(conversation_id)
        self._deleted.append(conversation_id)
        if is_open:
            self._session.conversation_id = None
            self.open_newest()
        self.list_changed.emit()
        return title

    def undo_delete(self) -> None:
        """Bring back and show the conversation that was deleted last; the next call the one before."""
        conversation_id = self._deleted[-1]
        self._store.undo_delete(conversation_id)
        self._engine.restored(conversation_id)
        self._deleted.pop()
        self.list_changed.emit()
        self.open(conversation_id)
        self._field.setFocus()

    @property
    def open_id(self) -> int | None:
        """The conversation that is open, None before the first one is."""
        return self._session.conversation_id

    @property
    def can_undo_delete(self) -> bool:
        """Whether a conversation was deleted since the window opened."""
        return bool(self._deleted)

    @property
    def busy_elsewhere(self) -> str | None:
        """Title of another conversation in which a reply is being written, None when there is none."""
        busy_id = self._stream.conversation_id
        if busy_id is None or busy_id == self._session.conversation_id:
            return None
        try:
            return self._store.conversation(busy_id).title
        except NotFoundError:  # deleted, and its reply is about to stop
            return None

    def _is_unused(self, conversation: Conversation) -> bool:
        is_reading = self._attachments.is_reading and conversation.id == self._session.conversation_id
        is_empty = conversation.leaf_id is None and not conversation.draft and not conversation.pinned
        return is_empty and not is_reading and not self._store.draft_attachments(conversation.id)
