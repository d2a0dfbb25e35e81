"""Whose keys and values the engine holds, and when the window is told what they are."""

from __future__ import annotations

from engine.engine import Engine
from engine.events import CacheChanged
from ui.engine_signals import EngineSignals
from ui.page_telling import PageTelling


class HeldTelling:
    """Follows what the engine has in hand; all but the watching belongs to the engine's thread.

    Attributes:
        engine: what holds it; to be set before anything is told.
        conversation_id: whose it is, 0 before anything was held.
    """

    def __init__(self, told: EngineSignals) -> None:
        self.engine: Engine
        self.conversation_id = 0
        self._told = told
        self._pages = PageTelling(self._tell_pages)
        self._context = PageTelling(self._tell_context)

    def watch_pages(self, watches: bool) -> None:
        """Have the pages told when they change, or no longer; from any thread."""
        self._pages.is_watched = watches

    def watch_context(self, watches: bool) -> None:
        """Have told what the parts of the context take when that changes, or no longer; from any thread."""
        self._context.is_watched = watches

    def take(self, conversation_id: int, changed: CacheChanged) -> None:
        """Tell what is held of a conversation from now on."""
        self.conversation_id = conversation_id
        self._told.kv_changed.emit(conversation_id, changed)
        self.changed()

    def come(self, conversation_id: int) -> None:
        """Have told, while they are watched, the pages of a conversation that come from disk."""
        self.conversation_id = conversation_id
        self._pages.changed()

    def tell(self) -> None:
        """Tell what is held now, after something was done to it."""
        self._told.kv_changed.emit(self.conversation_id, self.engine.held())
        self.changed()

    def changed(self) -> None:
        """Have told, while it is watched, what changes with every page."""
        for telling in (self._pages, self._context):
            telling.changed()

    @property
    def due_in_s(self) -> float | None:
        """Seconds until something is to be told that waits for it; None where nothing does."""
        dues = (self._pages.due_in_s, self._context.due_in_s)
        return min((due for due in dues if due is not None), default=None)

    def tell_due(self) -> None:
        """Tell what waits for its time, where that has come."""
        for telling in (self._pages, self._context):
            telling.tell_if_due()

    def _tell_pages(self) -> None:
        self._told.pages_changed.emit(self.conversation_id, self.engine.page_map())

    def _tell_context(self) -> None:
        self._told.context_usage_changed.emit(self.conversation_id, self.engine.context_usage())
