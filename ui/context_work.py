"""What the engine's thread does for the context of conversations beside replies, now or in idle time."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.chat import ChatService, ContextEvent
from app.ledger.positions import lacks_positions
from app.ledger.progress import ContextChanged, SummaryProgress
from app.ledger.records import ContextChange
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.events import CacheChanged, GenerationEvent, PrefillProgress
from engine.guard import GuardAction
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling

log = logging.getLogger(__name__)

PREPARING = "Preparing a summary of old turns."
REBUILDING = "Reading the conversation again."


@dataclass(frozen=True)
class _Due:
    """The conversation that was answered last, and how: it may need something before it is answered again.

    Attributes:
        conversation_id: which one.
        settings: how it was answered.
        is_to_read: whether something else came first while it was read again.
    """

    conversation_id: int
    settings: ReplySettings
    is_to_read: bool = False


class ContextWork:
    """Writes summaries, gives back what is left out, and makes a conversation ready for its next turn.

    All of it runs on the engine's thread.
    """

    def __init__(
        self,
        chat: ChatService,
        store: ConversationStore,
        engine: Engine,
        told: EngineSignals,
        held: HeldTelling,
    ) -> None:
        self._chat = chat
        self._store = store
        self._engine = engine
        self._told = told
        self._held = held
        self._due: _Due | None = None

    # Asked for.

    def summarize(
        self,
        conversation_id: int,
        leaf_id: int,
        keys: Sequence[str],
        settings: ReplySettings,
        cancel: CancelToken,
    ) -> None:
        """Write a summary of what the user has named, and give back what it stands for."""
        events = self._chat.summarize(conversation_id, leaf_id, keys, settings, cancel)
        self._follow_asked(conversation_id, events)
        self.settle(conversation_id, settings)

    def settle(self, conversation_id: int, settings: ReplySettings) -> None:
        """Take what the model no longer reads out of what is held."""
        leaf_id = self._leaf_id(conversation_id)
        if leaf_id is not None and self._chat.settle(conversation_id, leaf_id, settings) is not None:
            self._held.tell()

    def rebuild(self, conversation_id: int, settings: ReplySettings, cancel: CancelToken) -> None:
        """Read a conversation again from its beginning, and tell of the progress."""
        leaf_id = self._leaf_id(conversation_id)
        if leaf_id is None:
            return
        try:
            for event in self._chat.rebuild(conversation_id, leaf_id, settings, cancel):
                if isinstance(event, PrefillProgress):
                    self._told.rebuild_progress.emit(conversation_id, event)
                self._take(conversation_id, event)
        finally:
            self._held.tell()

    def tell_reading_cost(
        self, conversation_id: int, leaf_id: int, settings: ReplySettings, change: ContextChange
    ) -> None:
        """Tell what would have to be read for a change."""
        tokens = self._chat.reading_cost(conversation_id, leaf_id, settings, change)
        self._told.reading_cost_told.emit(conversation_id, change, tokens)

    # Between replies.

    @property
    def is_due(self) -> bool:
        """Whether anything may be to do when nothing else is."""
        return self._due is not None

    def after_reply(self, conversation_id: int, settings: ReplySettings) -> None:
        """Take note that a conversation was answered; only the last one is made ready for more."""
        self._due = _Due(conversation_id, settings)

    def forget(self, conversation_id: int | None = None) -> None:
        """Have nothing done for a conversation that is gone, or for none at all."""
        if self._due is not None and conversation_id in (None, self._due.conversation_id):
            self._due = None

    def make_ready(self, cancel: CancelToken) -> None:
        """Write the summary that the next trim needs, and read again where positions run out.

        Where these are about as many as the context has tokens, that trim is carried out first.

        Raises:
            Cancelled: something else came first; it is due still.
        """
        due, self._due = self._due, None
        if due is None or self._engine.loaded is None:
            return
        try:
            self._prepare(due, cancel)
            if due.is_to_read or self._lacks_positions(due, cancel):
                due = dataclasses.replace(due, is_to_read=True)
                self._close_gaps(due, cancel)
        except Cancelled:
            self._due = due
            raise
        except OctavoError as error:
            log.warning("A conversation could not be made ready for its next turn: %s", error)

    def _prepare(self, due: _Due, cancel: CancelToken) -> None:
        leaf_id = self._leaf_id(due.conversation_id)
        if leaf_id is not None:
            events = self._chat.prepare(due.conversation_id, leaf_id, due.settings, cancel)
            self._follow_quietly(due.conversation_id, events)

    def _lacks_positions(self, due: _Due, cancel: CancelToken) -> bool:
        """Return whether the conversation in hand is to be read again before its next turn.

        Where that helps only behind the trim which is due then, the trim is carried out.
        """
        conversation_id, leaf_id = due.conversation_id, self._leaf_id(due.conversation_id)
        if conversation_id != self._held.conversation_id or leaf_id is None:
            return False
        if lacks_positions(self._engine, conversation_id, due.settings):
            return True
        events = self._chat.trim_ahead(conversation_id, leaf_id, due.settings, cancel)
        return self._follow_quietly(conversation_id, events)

    def _close_gaps(self, due: _Due, cancel: CancelToken) -> None:
        leaf_id = self._leaf_id(due.conversation_id)
        if leaf_id is not None:
            events = self._chat.close_gaps(due.conversation_id, leaf_id, due.settings, cancel)
            self._follow_quietly(due.conversation_id, events)

    def _follow_asked(self, conversation_id: int, events: Iterator[ContextEvent]) -> None:
        """Follow what the user waits for."""
        try:
            for event in events:
                if isinstance(event, SummaryProgress):
                    self._told.summary_progress.emit(conversation_id, event)
                self._take(conversation_id, event)
        finally:
            self._told.summary_progress.emit(conversation_id, None)
            self._held.tell()

    def _follow_quietly(self, conversation_id: int, events: Iterator[ContextEvent | GenerationEvent]) -> bool:
        """Follow what nobody waits for, and say what it is; return whether there was something to do."""
        is_told, words = False, ""
        try:
            for event in events:
                is_told = True
                words = words or self._announced(conversation_id, event)
                self._take(conversation_id, event)
        finally:
            if words:
                self._told.background_changed.emit("")
            if is_told:
                self._held.tell()
        return is_told

    def _announced(self, conversation_id: int, event: ContextEvent | GenerationEvent) -> str:
        """Say what begins with an event, and of reading how much it is; return the words, if any."""
        words = ""
        match event:
            case SummaryProgress():
                words = PREPARING
            case PrefillProgress(done, total):
                self._told.rebuild_announced.emit(conversation_id, total - done)
                words = REBUILDING
        if words:
            self._told.background_changed.emit(words)
        return words

    def _take(self, conversation_id: int, event: ContextEvent | GenerationEvent) -> None:
        match event:
            case ContextChanged():
                self._told.ledger_changed.emit(event.conversation_id)
            case GuardAction():
                self._told.guard_acted.emit(event)
            case CacheChanged():
                self._held.take(conversation_id, event)
        self._held.changed()

    def _leaf_id(self, conversation_id: int) -> int | None:
        """Return the end of the conversation as it is now; None where it is gone."""
        try:
            return self._store.conversation(conversation_id).leaf_id
        except NotFoundError:
            return None
