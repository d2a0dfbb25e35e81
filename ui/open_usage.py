"""What the engine holds of the open conversation, in the version that is shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.ledger.records import message_key
from engine.context_usage import ContextUsage
from engine.kv.page_map import SpanKind
from ui.conversation_session import ConversationSession
from ui.engine_thread import EngineThread


class OpenUsage(QObject):
    """Follows what the engine has in hand, for all that shows tokens of the open conversation.

    Signals:
        changed: what is held changed.
    """

    changed = Signal()

    def __init__(
        self, engine: EngineThread, session: ConversationSession, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._told: tuple[int, ContextUsage | None] = (0, None)
        engine.context_usage_changed.connect(self._take)
        engine.model_loaded.connect(self._forget)
        engine.model_unloaded.connect(self._forget)
        engine.watch_context(True)

    @property
    def value(self) -> ContextUsage | None:
        """What is held of the open conversation, None where another one or another version is in hand."""
        whose, usage = self._told
        if usage is None or whose != self._session.conversation_id:
            return None
        known = {message_key(message.id) for message in self._session.messages}
        told = {span.key for span in usage.spans if span.kind in (SpanKind.USER, SpanKind.ASSISTANT)}
        return usage if told - {""} <= known else None

    @property
    def is_other(self) -> bool:
        """Whether something else is in hand."""
        return self._told[1] is not None and self.value is None

    def _take(self, conversation_id: int, usage: ContextUsage | None) -> None:
        self._told = conversation_id, usage
        self.changed.emit()

    def _forget(self) -> None:
        """Tell nothing of a model that is gone, before the engine tells what it holds now."""
        self._take(0, None)
