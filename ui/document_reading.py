"""How the documents of the open conversation are read, what that costs, and how far they are read ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Signal

from app.document_cost import DocumentCost, ReadingModel, document_costs
from app.document_size import DocumentSize
from app.documents.ways import DocumentWay
from app.duration_words import short_duration
from app.ledger.actions import read_by, together
from app.ledger.records import ContextChange, attachment_key
from app.reading_speed import ReadingSpeed
from app.reply_settings import ReplySettings
from app.store.conversations import ConversationStore
from app.store.records import Attachment
from engine.requests import LoadedModel
from ui.attachments import DraftAttachments
from ui.chat.attachments import AheadWords
from ui.context_use import UNKNOWN, ContextUse
from ui.conversation_session import ConversationSession
from ui.document_sizes import DocumentSizes
from ui.document_work import DocumentsAhead, ReadAheadProgress
from ui.engine_thread import EngineThread

_WAITS = AheadWords("It is read as soon as the model has time.", "Waits to be read")
_READ = AheadWords("Read. Your question waits only for its own words.", "Read")


class DocumentReading(QObject):
    """Knows the way of each document, keeps what the user chooses, and has read ahead what is read whole.

    Args:
        settings: tells how the next reply is to be written.

    Signals:
        changed: ways, costs or the reading ahead changed.
    """

    changed = Signal()

    def __init__(
        self,
        store: ConversationStore,
        engine: EngineThread,
        session: ConversationSession,
        drafts: DraftAttachments,
        sizes: DocumentSizes,
        settings: Callable[[], ReplySettings],
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._engine = engine
        self._session = session
        self._drafts = drafts
        self._sizes = sizes
        self._settings = settings
        self._speed = ReadingSpeed()
        self._use = UNKNOWN
        self._loaded: LoadedModel | None = None
        self._costs: dict[int, DocumentCost] = {}
        self._ahead: DocumentsAhead | None = None
        self._asked: object = (None, None)
        self._progress: ReadAheadProgress | None = None
        engine.speed_changed.connect(self._on_speed)
        engine.document_progress.connect(self._on_progress)
        sizes.changed.connect(self.changed)

    # What is shown.

    def tokens(self, attachment: Attachment) -> int | None:
        """Return the tokens of a document, None while they are not counted."""
        return self._sizes.tokens(attachment)

    def cost(self, attachment: Attachment) -> DocumentCost | None:
        """Return what a document costs by each way, None while that is not known."""
        return self._costs.get(attachment.id)

    def way(self, attachment: Attachment) -> DocumentWay | None:
        """Return how a document will be read, as chosen or as is sensible; None while that is not known."""
        chosen = self._session.context.way(attachment_key(attachment.id))
        cost = self.cost(attachment)
        return chosen or (cost.sensible if cost is not None else None)

    def ahead(self, attachment: Attachment) -> AheadWords | None:
        """Return how far a document is read already; None where it is not to be."""
        if self._ahead is None or dict(self._ahead.ways).get(attachment.id) is not DocumentWay.WHOLE:
            return None
        return _WAITS if self._progress is None else ahead_words(self._progress)

    def sent(self) -> tuple[tuple[Attachment, DocumentWay], ...]:
        """Return the documents of the conversation that the next question is read against, not whole."""
        context, documents = self._session.context, self._session.context.items.documents
        ways = ((each, context.way(key)) for key, each in documents.items() if context.ways.is_available(key))
        return tuple((each, way) for each, way in ways if way not in (None, DocumentWay.WHOLE))

    # What is done.

    def refresh(self, use: ContextUse) -> None:
        """Work out anew what documents cost beside all else that the next prompt has, and read ahead."""
        self._use = use
        if self._loaded is not self._engine.loaded:
            self._loaded = self._engine.loaded
            self._costs = {}
        documents = [*self._drafts.attachments, *(each for each, _ in self.sent())]
        sizes = {each.id: size for each in documents if (size := self._sizes.size(each)) is not None}
        if self._is_counted:
            self._costs = self._worked_out(sizes)
        else:  # as for a moment with each letter that is written: what was known holds still
            self._costs = {key: cost for key, cost in self._costs.items() if key in sizes}
        self._read_ahead()

    def choose(self, attachment_id: int, way: DocumentWay) -> None:
        """Have a document read by a way from the next answer on; for one that was sent, it can be undone."""
        conversation_id, context = self._session.conversation_id, self._session.context
        assert conversation_id is not None
        key = attachment_key(attachment_id)
        change = read_by(context, key, way)
        if key in context.items.documents:
            self._session.change_context(change)
        else:
            self._store.change_context(conversation_id, change)
            self._session.follow_ledger(conversation_id)
        self.changed.emit()

    def keep_ways(self) -> None:
        """Store the ways of the draft's documents as they are shown, now that they are sent."""
        conversation_id, context = self._session.conversation_id, self._session.context
        ways = {attachment_key(each.id): self._shown_way(each) for each in self._drafts.attachments}
        shown = {key: way for key, way in ways.items() if way is not None}
        change = together(context, shown, lambda now, key: read_by(now, key, shown[key]))
        if change != ContextChange() and conversation_id is not None:
            self._store.change_context(conversation_id, change)
            self._session.follow_ledger(conversation_id)

    def _shown_way(self, attachment: Attachment) -> DocumentWay | None:
        """Return the way that was shown, unless it is chosen already or cannot be and is to be refused."""
        cost = self.cost(attachment)
        if cost is None or self._session.context.way(attachment_key(attachment.id)) is not None:
            return None
        return None if cost.of(cost.sensible).refusal else cost.sensible

    @property
    def _is_counted(self) -> bool:
        """Whether all that is read beside the documents is counted."""
        use = self._use
        return None not in (use.history_tokens, use.text_tokens, use.template_tokens)

    def _worked_out(self, sizes: Mapping[int, DocumentSize]) -> dict[int, DocumentCost]:
        """Return what documents cost, by their attachments' ids."""
        room = self._use.document_room
        if self._loaded is None or room is None or not sizes:
            return {}
        settings, context = self._settings(), self._session.context
        costs = document_costs(
            list(sizes.values()),
            [context.way(attachment_key(key)) for key in sizes],
            room,
            ReadingModel(self._loaded, settings.kv, self._speed),
            settings.document_mode,
        )
        return dict(zip(sizes, costs, strict=True))

    def _read_ahead(self) -> None:
        """Tell the engine what is to be read before the next message is sent, where that is another now."""
        ahead = self._wanted()
        context = self._session.context
        behind = None if ahead is None else (self._engine.loaded, self._session.leaf_id, context.rows)
        asked = ahead, behind
        if asked != self._asked:
            self._asked = asked
            self._ahead, self._progress = ahead, None
            self._engine.read_ahead(ahead)

    def _wanted(self) -> DocumentsAhead | None:
        """Return what can be read ahead: what stands before the first document whose way is not known."""
        conversation_id = self._session.conversation_id
        if conversation_id is None or self._engine.loaded is None or self._session.is_streaming:
            return None
        ways = list[tuple[int, DocumentWay]]()
        for attachment in self._drafts.leading:
            cost, way = self.cost(attachment), self.way(attachment)
            if cost is None or way is None:
                break
            if way is DocumentWay.WHOLE and cost.of(way).refusal:
                return None  # it is refused, and to be chosen
            ways.append((attachment.id, way))
        if not any(way is DocumentWay.WHOLE for _, way in ways):
            return None
        return DocumentsAhead(conversation_id, tuple(ways), self._settings())

    def _on_speed(self, speed: ReadingSpeed) -> None:
        self._speed = speed
        self.changed.emit()

    def _on_progress(self, conversation_id: int, progress: ReadAheadProgress) -> None:
        if self._ahead is not None and conversation_id == self._ahead.conversation_id:
            self._progress = progress
            self.changed.emit()


def ahead_words(progress: ReadAheadProgress) -> AheadWords:
    """Return how far documents are read, in words."""
    if progress.error:
        return AheadWords(f"It is read with your question. {progress.error}", "Read with your question")
    if progress.is_done:
        return _READ
    seconds = progress.seconds_left
    left = "" if seconds is None else f", {short_duration(seconds)} left"
    words = f"Read {progress.done:,} of {progress.total:,} tokens{left}"
    share = progress.done / progress.total if progress.total else 0.0
    return AheadWords(words, f"{share:.0%} read", (progress.done, progress.total))
