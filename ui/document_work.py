"""What the engine's thread does for the documents of the next message, before it is sent."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.ledger.context import ConversationContext
from app.ledger.records import ContextChange, ItemMark, attachment_key
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError, sentence_of
from engine.events import CacheChanged, GenerationEvent, PrefillProgress
from engine.guard import GuardAction
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling

log = logging.getLogger(__name__)

_LEAST_S = 0.5
"""How long is left is said once something was read for so long."""


@dataclass(frozen=True)
class DocumentsAhead:
    """What is to be read before the next message of a conversation is sent.

    Attributes:
        conversation_id: whose message it is.
        ways: how each document beside it is read, by the attachment's id, in their order.
        settings: how it will be answered.
    """

    conversation_id: int
    ways: tuple[tuple[int, DocumentWay], ...]
    settings: ReplySettings

    @property
    def change(self) -> ContextChange:
        """The ways, as marks."""
        return ContextChange(tuple(ItemMark(attachment_key(key), way=way) for key, way in self.ways))


@dataclass(frozen=True)
class ReadAheadProgress:
    """How far the documents of the next message are read before it is sent.

    Attributes:
        done: tokens of the next prompt that have been read, or were held already.
        total: tokens of it that are known before the message is sent.
        seconds_left: how long the rest takes, None before that is known.
        is_done: whether the next message waits only for its own words.
        error: a sentence on why they cannot be read ahead, else empty.
    """

    done: int
    total: int
    seconds_left: float | None = None
    is_done: bool = False
    error: str = ""


class DocumentWork:
    """Reads the documents of the message that is being written, so that it waits only for its own words.

    All of it runs on the engine's thread, between everything else.
    """

    def __init__(
        self, store: ConversationStore, engine: Engine, told: EngineSignals, held: HeldTelling
    ) -> None:
        self._store = store
        self._engine = engine
        self._told = told
        self._held = held
        self._wanted: DocumentsAhead | None = None

    def want(self, ahead: DocumentsAhead | None) -> None:
        """Have these documents read instead of those before; None for none."""
        self._wanted = ahead

    @property
    def is_due(self) -> bool:
        """Whether there is something to read, as far as that is known."""
        return self._wanted is not None and self._engine.loaded is not None

    def read(self, cancel: CancelToken) -> None:
        """Read what is wanted, and tell how far it is.

        Raises:
            Cancelled: something else comes first; what is left is due still.
        """
        ahead, self._wanted = self._wanted, None
        if ahead is None or self._engine.loaded is None:
            return
        try:
            context = self._context(ahead)
            if context is not None:
                request = ahead.settings.request(context, ahead.conversation_id)
                self._follow(ahead.conversation_id, self._engine.read_ahead(request, cancel))
        except Cancelled:
            self._wanted = ahead
            raise
        except Exception as error:
            self._tell(ahead.conversation_id, ReadAheadProgress(0, 0, error=sentence_of(error)))
            if not isinstance(error, OctavoError):
                raise
            log.info("Documents were not read ahead: %s", error)

    def _context(self, ahead: DocumentsAhead) -> ConversationContext | None:
        """Return what the next message stands behind and its documents; None where they are gone or sent."""
        try:
            leaf_id = self._store.conversation(ahead.conversation_id).leaf_id
        except NotFoundError:
            return None
        ways = dict(ahead.ways)
        drafts = {each.id: each for each in self._store.draft_attachments(ahead.conversation_id)}
        if not ways.keys() <= drafts.keys():
            return None
        path = [] if leaf_id is None else self._store.path(leaf_id)
        context = ConversationContext.of(path, self._store.ledger(ahead.conversation_id))
        return context.changed(ahead.change).with_draft([drafts[key] for key in ways])

    def _follow(self, conversation_id: int, events: Iterator[GenerationEvent]) -> None:
        """Follow reading, and tell of it, also of what was there already."""
        last, pace = PrefillProgress(0, 0, 0), _Pace()
        try:
            for event in events:
                match event:
                    case PrefillProgress():
                        last = event
                        self._tell(conversation_id, pace.progress(event))
                    case CacheChanged():
                        self._held.take(conversation_id, event)
                    case GuardAction():
                        self._told.guard_acted.emit(event)
                self._held.changed()
        finally:
            self._held.tell()
        self._tell(conversation_id, ReadAheadProgress(last.total, last.total, 0.0, is_done=True))

    def _tell(self, conversation_id: int, progress: ReadAheadProgress) -> None:
        self._told.document_progress.emit(conversation_id, progress)


class _Pace:
    """How fast something is read since it was begun or gone on with."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._first: int | None = None

    def progress(self, event: PrefillProgress) -> ReadAheadProgress:
        """Return how far it is, and when it will be done at the speed so far."""
        seconds = time.monotonic() - self._began_s
        if self._first is None:
            self._first, self._began_s = event.done, time.monotonic()
            return ReadAheadProgress(event.done, event.total)
        read, left = event.done - self._first, event.total - event.done
        known = read > 0 and seconds >= _LEAST_S
        return ReadAheadProgress(event.done, event.total, left * seconds / read if known else None)
