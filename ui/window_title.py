"""The title of the window: that of the open conversation."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.store.conversations import ConversationStore
from ui.chat_controller import ChatController


class WindowTitle(QObject):
    """Follows the open conversation and its name."""

    def __init__(self, store: ConversationStore, chat: ChatController, window: QWidget) -> None:
        super().__init__(window)
        self._store = store
        self._chat = chat
        self._window = window
        chat.opened.connect(self._show)
        chat.list_changed.connect(self._show)

    def _show(self) -> None:
        conversation_id = self._chat.session.conversation_id
        if conversation_id is not None:
            self._window.setWindowTitle(f"{self._store.conversation(conversation_id).title} – Octavo")
