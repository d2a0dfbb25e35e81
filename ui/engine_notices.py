"""What is said of the engine's work beside replies, as far as people have to know."""

from __future__ import annotations

from PySide6.QtCore import QObject

from ui.engine_thread import EngineThread
from ui.notifications import Level, Notice, Notifications

_REBUILD = "rebuild"


class EngineNotices(QObject):
    """Says what failed, and that a conversation is read again because its positions run out, while it is."""

    def __init__(
        self, engine: EngineThread, notifications: Notifications, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._notifications = notifications
        engine.failed.connect(
            lambda failure: notifications.error(failure.title, failure.message, failure.details)
        )
        engine.rebuild_announced.connect(self._on_announced)
        engine.background_changed.connect(self._on_background)

    def _on_announced(self, _conversation_id: int, num_tokens: int) -> None:
        self._notifications.post(
            Notice(
                Level.INFO,
                "The conversation is read again",
                f"{num_tokens:,} tokens of it are read once more, as the model's positions are used up. You "
                "can go on writing: an answer comes first.",
                topic=_REBUILD,
            )
        )

    def _on_background(self, words: str) -> None:
        if not words:
            self._notifications.withdraw(_REBUILD)
