"""The open conversation: shows it, sends in it, and follows the reply that is written in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from app.ledger.actions import back_to
from app.ledger.context import ConversationContext
from app.ledger.left_out import left_out_documents, left_out_runs
from app.ledger.records import ContextChange, LedgerRows
from app.ledger.undo import UserChanges
from app.reply_settings import ReplySettings
from app.segments.progress import ReadingProgress
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import Message
from ui.chat.view import ChatView
from ui.profiles.current import CurrentProfile
from ui.reply_stream import ReplyStream
from ui.unsaved_replies import UnsavedReplies

_PAGE = 50
_DRAFT_DELAY_MS = 1000
_DRAFT_RETRY_MS = 3000


class ConversationSession(QObject):
    """Connects one conversation of the store, the chat view and the reply stream.

    Attributes:
        conversation_id: the open conversation, None before the first is opened.
        messages: its path from root to leaf, all of it.
        context: what the model reads of that path, and what not.

    Signals:
        opened: another conversation is open.
        path_changed: messages came, went or were finished.
        list_changed: a title or a date changed.
        context_changed: `context` is another one, by whoever it was changed.
        settle_wanted: the id of the conversation whose context the user has changed.
        draft_unsaved: the `StoreError` that keeps the draft from being saved; told once, then tried again.
    """

    opened = Signal()
    path_changed = Signal()
    list_changed = Signal()
    context_changed = Signal()
    settle_wanted = Signal(int)
    draft_unsaved = Signal(object)

    def __init__(
        self,
        store: ConversationStore,
        view: ChatView,
        stream: ReplyStream,
        unsaved: UnsavedReplies,
        profile: CurrentProfile,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._view = view
        self._stream = stream
        self._unsaved = unsaved
        self._profile = profile
        self.conversation_id: int | None = None
        self.messages: list[Message] = []
        self.context = ConversationContext((), LedgerRows())
        self.draft = ""
        self._is_draft_saved = True
        self._is_draft_stuck = False
        self._draft_timer = QTimer(self)
        self._draft_timer.setSingleShot(True)
        self._draft_timer.timeout.connect(self._on_draft_due)
        self._num_shown = 0
        self._changes = UserChanges()
        view.earlier_requested.connect(self._show_earlier)
        view.sibling_requested.connect(self._show_sibling)
        stream.began.connect(self._on_began)
        stream.text_added.connect(self._on_text)
        stream.prefill_changed.connect(self._on_prefill)
        stream.ended.connect(self._on_ended)

    @property
    def is_streaming(self) -> bool:
        """Whether a reply is being written in the open conversation."""
        return self.conversation_id is not None and self._stream.conversation_id == self.conversation_id

    @property
    def leaf_id(self) -> int | None:
        """The last message of the path."""
        return self.messages[-1].id if self.messages else None

    def open(self, conversation_id: int) -> None:
        """Show another conversation."""
        self.save_draft()
        self._profile.save()
        conversation = self._store.conversation(conversation_id)
        self.conversation_id = conversation_id
        self.draft = conversation.draft
        self._profile.open(conversation)
        self._show_path(conversation.leaf_id)
        self.opened.emit()

    def send(self, text: str, attachment_ids: Sequence[int], settings: ReplySettings) -> None:
        """Add the user's message to the path and ask for an answer."""
        assert self.conversation_id is not None
        self._unsaved.save()
        message = self._store.add_user_message(self.conversation_id, self.leaf_id, text, list(attachment_ids))
        self._draft_timer.stop()
        self._is_draft_saved = True
        self.draft = ""
        self.messages.append(message)
        self._num_shown += 1
        self._view.append_message(message)
        self._show_context()
        self.path_changed.emit()
        self.list_changed.emit()
        self._stream.request(self.conversation_id, message.id, settings)

    def answer(self, message_id: int, settings: ReplySettings) -> None:
        """Ask once more for an answer to the last message, which has none yet."""
        assert self.conversation_id is not None
        self._unsaved.save()
        self._stream.request(self.conversation_id, message_id, settings)

    @property
    def can_undo_context(self) -> bool:
        """Whether a change that the user made since the program started can still be taken back here."""
        return self._changes.last(self.conversation_id, self.context) is not None

    def change_context(self, change: ContextChange) -> None:
        """Change what the model reads of the conversation, from the next message on; it can be undone."""
        assert self.conversation_id is not None
        inverse = self._store.change_context(self.conversation_id, change)
        changed = self.context.with_rows(self._store.ledger(self.conversation_id))
        self._changes.add(self.conversation_id, self.context, changed, inverse)
        self._take_ledger()
        self.settle_wanted.emit(self.conversation_id)

    def remember_since(self, conversation_id: int, before: LedgerRows) -> LedgerRows:
        """Let what the engine's thread has done for the user since `before` be undone; return what is now."""
        now = self._store.ledger(conversation_id)
        context = self.context
        if conversation_id != self.conversation_id:
            leaf_id = self._store.conversation(conversation_id).leaf_id
            context = ConversationContext.of([] if leaf_id is None else self._store.path(leaf_id), now)
        former, changed = context.with_rows(before), context.with_rows(now)
        self._changes.add(conversation_id, former, changed, back_to(before, now))
        return now

    def undo_context(self) -> None:
        """Take the last change of the context back that can be taken back; nothing where there is none."""
        change = self._changes.last(self.conversation_id, self.context)
        if change is not None and self.conversation_id is not None:
            self._store.change_context(self.conversation_id, change.inverse)
            self._changes.remove(self.conversation_id, change)
            self._take_ledger()
            self.settle_wanted.emit(self.conversation_id)

    def follow_ledger(self, conversation_id: int) -> None:
        """Take over what the engine's thread has changed of a conversation's context."""
        if conversation_id == self.conversation_id:
            self._take_ledger()

    def _take_ledger(self) -> None:
        rows = self._store.ledger(self.conversation_id or 0)
        if rows != self.context.rows:
            self.context = self.context.with_rows(rows)
            self._show_context()

    def _show_context(self) -> None:
        """Bring the context in line with the path, and what is shown with it."""
        self.context = ConversationContext.of(self.messages, self.context.rows)
        self._view.show_left_out(left_out_runs(self.context), left_out_documents(self.context))
        self.context_changed.emit()

    def regenerate(self, message_id: int, settings: ReplySettings) -> None:
        """Ask for another answer to the same question; the old one stays as its sibling."""
        assert self.conversation_id is not None
        self._unsaved.save()
        parent_id = self._store.message(message_id).parent_id
        if parent_id is not None:
            self._store.set_leaf(self.conversation_id, parent_id)
            self._show_path(parent_id)
            self._stream.request(self.conversation_id, parent_id, settings)

    def edit(self, message_id: int, text: str, settings: ReplySettings) -> None:
        """Send a message again in other words, with its documents; the old one stays as its sibling."""
        assert self.conversation_id is not None
        self._unsaved.save()
        old = self._store.message(message_id)
        ids = [attachment.id for attachment in old.attachments]
        new = self._store.add_user_message(self.conversation_id, old.parent_id, text, ids, keep_draft=True)
        self._view.forget_edit(message_id)
        self._show_path(new.id)
        self.list_changed.emit()
        self._stream.request(self.conversation_id, new.id, settings)

    def set_draft(self, text: str) -> None:
        """Remember the text being written; it is saved shortly after."""
        self.draft = text
        self._is_draft_saved = False
        if not self._draft_timer.isActive():  # else it would not be saved while the user goes on writing
            self._draft_timer.start(_DRAFT_DELAY_MS)

    def save_draft(self) -> None:
        """Save the text being written, when it is not saved yet."""
        self._draft_timer.stop()
        if not self._is_draft_saved and self.conversation_id is not None:
            self._store.set_draft(self.conversation_id, self.draft)
            self._is_draft_saved = True
        self._is_draft_stuck = False

    def _on_draft_due(self) -> None:
        try:
            self.save_draft()
        except StoreError as error:
            if not self._is_draft_stuck:
                self._is_draft_stuck = True
                self.draft_unsaved.emit(error)
            self._draft_timer.start(_DRAFT_RETRY_MS)

    def _show_path(self, leaf_id: int | None) -> None:
        self.messages = self._unsaved.in_place(self._store.path(leaf_id)) if leaf_id is not None else []
        shown = self.messages[-_PAGE:]
        self._num_shown = len(shown)
        writing = self._stream.message if self.is_streaming else None
        if writing is not None:
            shown = [
                dataclasses.replace(message, text="") if message.id == writing.id else message
                for message in shown
            ]
        self.context = ConversationContext((), self._store.ledger(self.conversation_id or 0))
        self._show_context()
        self._view.show_messages(shown, len(self.messages) > self._num_shown)
        if writing is not None and any(message.id == writing.id for message in shown):
            self._view.begin_stream(writing.id)
            if self._stream.prefill is not None:
                self._view.set_prefill(self._stream.prefill)
            if self._stream.text:
                self._view.append_text(self._stream.text)
        self.path_changed.emit()

    def _show_earlier(self) -> None:
        end = len(self.messages) - self._num_shown
        start = max(0, end - _PAGE)
        self._num_shown += end - start
        self._view.prepend_messages(self.messages[start:end], start > 0)

    def _show_sibling(self, message_id: int) -> None:
        if self.conversation_id is None or self.is_streaming:
            return
        leaf_id = self._store.deepest_leaf(message_id)
        self._store.set_leaf(self.conversation_id, leaf_id)
        self._show_path(leaf_id)

    def _on_began(self, message: Message) -> None:
        if message.conversation_id == self.conversation_id:
            self.messages.append(message)
            self._num_shown += 1
            self._view.append_message(message)
            self._view.begin_stream(message.id)
            self._show_context()

    def _on_text(self, text: str) -> None:
        if self.is_streaming:
            self._view.append_text(text)

    def _on_prefill(self, progress: ReadingProgress) -> None:
        if self.is_streaming:
            self._view.set_prefill(progress)

    def _on_ended(self, message: Message) -> None:
        if message.conversation_id == self.conversation_id:
            self.messages = [message if old.id == message.id else old for old in self.messages]
            self._view.finish_stream(message)
            self._show_context()
            self.path_changed.emit()
        self.list_changed.emit()
