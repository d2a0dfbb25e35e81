"""What happens between the composer, the documents, the open conversation and the engine."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from ui.attachments import DraftAttachments
from ui.chat.composer import Composer
from ui.chat.view import ChatView
from ui.context_budget import ContextBudget
from ui.context_use import ContextUse, context_note
from ui.conversation_session import ConversationSession
from ui.conversation_switcher import ConversationSwitcher
from ui.document_controller import DocumentController
from ui.engine_state import EngineState
from ui.engine_thread import EngineThread
from ui.next_reply import AS_SET, Once, reply_settings
from ui.notifications import Notifications
from ui.open_usage import OpenUsage
from ui.profiles.current import CurrentProfile
from ui.refused_message import RefusedMessage
from ui.reply_requests import ReplyRequests
from ui.reply_stream import ReplyStream
from ui.send_check import SendCheck
from ui.stored_settings import StoredSettings
from ui.token_counts import TokenCounts
from ui.unsaved_replies import UnsavedReplies

_WAITS_FOR = {
    EngineState.SUMMARIZING: "The message waits until a summary is written.",
    EngineState.REBUILDING: "The message waits until a conversation is read again.",
}
_METER_MS = 1000
"""How often the context meter follows a reply that is being written."""


class ChatController(QObject):
    """Sends what is written, when it may be sent, and says why when it may not.

    Attributes:
        session: the open conversation.
        switcher: opens another one, begins one, deletes one.
        stream: the reply that is being written.
        attachments: the documents beside the message that is being written.
        documents: how they, and those that were sent, are read.
        counts: the tokens of texts.
        budget: adds them up.
        usage: what the engine holds of the open conversation.
        replies: asks for answers to messages that are there.
        refused: what did not fit, and what would.

    Signals:
        list_changed: the list of conversations must be read again.
        opened: another conversation is open.
        changed: messages, figures or the engine's state changed.
        text_wanted: the extracted text of a document is to be shown; its attachment's id.
    """

    list_changed = Signal()
    opened = Signal()
    changed = Signal()
    text_wanted = Signal(int)

    def __init__(
        self,
        store: ConversationStore,
        engine: EngineThread,
        settings: StoredSettings,
        profile: CurrentProfile,
        notifications: Notifications,
        view: ChatView,
        composer: Composer,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._settings = settings
        self._profile = profile
        self._composer = composer
        self._view = view
        self._refused = ""
        self.counts = TokenCounts(self)
        self.budget = ContextBudget(self.counts)
        self.attachments = DraftAttachments(store, self)
        self.stream = ReplyStream(engine, self)
        self._unsaved = UnsavedReplies(store, self)
        self.session = ConversationSession(store, view, self.stream, self._unsaved, profile, self)
        self.switcher = ConversationSwitcher(
            store, engine, self.session, self.stream, self.attachments, profile, composer, self
        )
        self.usage = OpenUsage(engine, self.session, self)
        self._check = SendCheck(
            engine, settings, profile, self.session, self.stream, self.attachments, self.budget, self.usage
        )
        self.documents = DocumentController(
            store,
            engine,
            self.session,
            self.attachments,
            self.budget,
            lambda: reply_settings(settings.value, profile.value),
            notifications,
            view,
            composer,
            self,
        )
        self.replies = ReplyRequests(self.session, self._check, self.reply_settings, self._refuse, view, self)
        self._meter_timer = QTimer(self)
        self._meter_timer.setInterval(_METER_MS)
        self._meter_timer.timeout.connect(self._refresh)
        self._connect_session(view)
        self._connect_composer(composer)
        self.counts.failed.connect(lambda error: notifications.error("Tokens could not be counted", error))
        self.refused = RefusedMessage(
            composer.refusal,
            self.session,
            profile,
            self.replies.is_free,
            self._send_again,
            self.replies.answer,
            self.documents.reading.choose,
            self,
        )
        self.refused.packed_weights_wanted.connect(self._load_packed)
        self.session.draft_unsaved.connect(
            lambda error: notifications.error("What you write could not be saved yet", error)
        )
        self._unsaved.saved.connect(
            lambda: notifications.info("Saved", "What could not be saved before is saved now.")
        )
        settings.changed.connect(self._refresh)
        profile.changed.connect(self._refresh)
        engine.reply_unsaved.connect(self._unsaved.add)
        engine.reply_refused.connect(self.refused.show_unanswered)
        engine.speed_changed.connect(self.refused.take_speed)
        engine.ledger_changed.connect(self.session.follow_ledger)
        engine.background_changed.connect(self._refresh)
        self.session.settle_wanted.connect(self._settle)
        engine.model_loaded.connect(self._on_model)
        engine.model_unloaded.connect(self._on_model)
        engine.state_changed.connect(self._on_engine_state)

    def send(self, text: str, once: Once = AS_SET) -> None:
        """Send the text with its documents, or say why not; nothing is lost then."""
        text = text.strip()
        refusal = self._check.refusal(text)
        admission = None if refusal or once.anyway else self._check.admission(text, once)
        if refusal:
            self._refuse(refusal)
        elif admission is not None:
            self.refused.show_unsent(admission)
            self._refresh()
        else:
            self._send(text, once)

    def save(self) -> None:
        """Save the draft and replies that are not saved yet.

        Raises:
            StoreError: not everything could be saved.
        """
        self._unsaved.save()
        self.session.save_draft()
        self._profile.save()

    def shut_down(self) -> None:
        """Stop what runs beside the engine."""
        self.documents.stop()
        self.counts.stop()

    def _connect_session(self, view: ChatView) -> None:
        self.session.opened.connect(self._on_opened)
        self.session.path_changed.connect(self._refresh)
        self.session.context_changed.connect(self._refresh)
        self.session.list_changed.connect(self.list_changed)
        self.switcher.list_changed.connect(self.list_changed)
        self.stream.busy_changed.connect(self._on_busy_changed)
        self.counts.counted.connect(self._refresh)
        self.usage.changed.connect(self._refresh)
        self.attachments.changed.connect(self._on_attachments)
        self.documents.changed.connect(self._refresh)
        self.documents.text_wanted.connect(self.text_wanted)

    def _connect_composer(self, composer: Composer) -> None:
        composer.submitted.connect(self.send)
        composer.stop_requested.connect(self.stream.stop)
        composer.text_edited.connect(self._on_text_edited)

    def _send(self, text: str, once: Once) -> None:
        ids = [attachment.id for attachment in self.attachments.attachments]
        self.documents.reading.keep_ways()
        self.session.send(text, ids, self.reply_settings(once))
        self._composer.set_text("")
        self.attachments.taken()

    def _send_again(self, once: Once) -> None:
        """Send what is written once more, with what was chosen for it."""
        self.send(self._composer.text, once)

    def reply_settings(self, once: Once = AS_SET) -> ReplySettings:
        """Return how the next reply is to be written, with what is set now; the profile is kept with it."""
        self._profile.keep()
        return reply_settings(self._settings.value, self._profile.value, once)

    def _settle(self, conversation_id: int) -> None:
        """Have given back what the model no longer reads, after the user changed the context."""
        self._engine.settle(conversation_id, self.reply_settings())

    def _review_refusal(self, use: ContextUse) -> None:
        """Say no more of what is being written than is still true, as after a document was taken away."""
        if self.refused.is_unsent and use.used_tokens is not None:
            admission = self._check.admission(self.session.draft.strip())
            if admission is None:
                self.refused.forget()
            else:
                self.refused.show_unsent(admission)

    def _refuse(self, sentence: str) -> None:
        """Say why something was not done, until something changes."""
        self._refused = sentence
        self._composer.set_hint(sentence, is_error=True)

    def _on_text_edited(self, text: str) -> None:
        self._refused = ""
        if self.refused.is_unsent:
            self.refused.forget()
        self.session.set_draft(text)
        self._refresh()

    def _on_attachments(self) -> None:
        if not self.attachments.is_reading:
            self._refused = ""
        self._refresh()

    def _on_opened(self) -> None:
        assert self.session.conversation_id is not None
        self._refused = ""
        self._composer.set_text(self.session.draft)
        self.attachments.open(self.session.conversation_id)
        self._refresh()
        self.opened.emit()

    def _on_model(self) -> None:
        if self.refused.is_unsent:
            self.refused.forget()
        loaded = self._engine.loaded
        self.counts.set_counter(loaded.counter if loaded is not None else None)
        self._refresh()

    def _on_busy_changed(self) -> None:
        if self.stream.conversation_id is None:
            self._meter_timer.stop()
        else:
            self._meter_timer.start()
        self._refresh()

    def _load_packed(self, fitting_tokens: int) -> None:
        """Load the model again; weights stay packed where the context does not fit beside unpacked ones."""
        loaded, profile = self._engine.loaded, self._profile.value
        assert loaded is not None
        wanted = min(profile.max_context or fitting_tokens, fitting_tokens)
        self._engine.load(loaded.info.path, profile.kv, wanted)

    def _on_engine_state(self, state: EngineState) -> None:
        self._refused = ""
        self._refresh()
        self.refused.follow_load(state)

    @property
    def _waits_for(self) -> str:
        """What a message that was sent waits for, empty where the engine can see to it at once."""
        is_waiting = self.stream.conversation_id is not None and self.stream.message is None
        return _WAITS_FOR.get(self._engine.state, "") if is_waiting else ""

    def _refresh(self) -> None:
        """Bring the composer in line with everything that it depends on."""
        use = self._check.use(self.session.draft.strip())
        self.documents.show(use)
        self._composer.set_token_count(use.text_tokens, use.attachment_tokens)
        notes = (context_note(use, self._profile.value), self._engine.background, self._waits_for)
        if use.read_tokens is not None or not self.session.is_streaming:  # what grows is always to be counted
            note = " ".join(filter(None, notes))
            self._composer.set_context(use.read_tokens, use.limit_tokens, note, is_about=use.is_about)
        self._composer.set_busy(self.session.is_streaming)
        self._review_refusal(use)
        self.refused.refresh()
        surplus = "" if self.refused.is_shown else self._check.surplus(self.session.draft.strip(), use)
        self._composer.set_hint(self._refused or surplus, is_error=True)
        self._view.set_actions_enabled(not self.session.is_streaming)
        self.changed.emit()
