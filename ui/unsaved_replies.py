"""Replies that ended while nothing could be saved: kept, shown, and saved as soon as that works."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from PySide6.QtCore import QObject, QTimer, Signal

from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError, StoreError
from app.store.records import Message

_RETRY_MS = 3000


class UnsavedReplies(QObject):
    """Final rows that the store could not take, as when the disk is full.

    Signals:
        saved: everything that waited is in the store now.
    """

    saved = Signal()

    def __init__(self, store: ConversationStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._replies: dict[int, Message] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(_RETRY_MS)
        self._timer.timeout.connect(self._retry)

    def add(self, reply: Message) -> None:
        """Keep a reply's final row, and try from time to time to save it."""
        self._replies[reply.id] = reply
        self._timer.start()

    def in_place(self, messages: Sequence[Message]) -> list[Message]:
        """Return `messages` as they would be if everything were saved."""
        return [self._replies.get(message.id, message) for message in messages]

    def save(self) -> None:
        """Save what waits.

        Raises:
            StoreError: it still cannot be saved.
        """
        if not self._replies:
            return
        for reply in list(self._replies.values()):
            with contextlib.suppress(NotFoundError):  # then its conversation is gone for good
                self._store.finish_reply(reply.id, reply.text, reply.state, reply.stats, reply.error)
            del self._replies[reply.id]
        self._timer.stop()
        self.saved.emit()

    def _retry(self) -> None:
        with contextlib.suppress(StoreError):  # which was told when it first happened
            self.save()
