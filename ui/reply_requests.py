"""Asks for answers to messages that are in the conversation already."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.reply_settings import ReplySettings
from ui.chat.view import ChatView
from ui.conversation_session import ConversationSession
from ui.next_reply import AS_SET, Once
from ui.send_check import SendCheck


class ReplyRequests(QObject):
    """Asks for an answer where the engine can give one now, and says why where it cannot.

    Args:
        settings: tells how the next reply is to be written, with what was chosen for it alone.
        refuse: says a sentence below the field.
    """

    def __init__(
        self,
        session: ConversationSession,
        check: SendCheck,
        settings: Callable[[Once], ReplySettings],
        refuse: Callable[[str], None],
        view: ChatView,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._check = check
        self._settings = settings
        self._refuse = refuse
        view.regenerate_requested.connect(self.regenerate)
        view.edit_requested.connect(self.edit)

    def is_free(self) -> bool:
        """Return whether the engine can answer now; say why where it cannot."""
        refusal = self._check.engine_refusal()
        if refusal:
            self._refuse(refusal)
        return not refusal

    def answer(self, message_id: int, once: Once) -> None:
        """Answer the last message, which has no answer yet."""
        if self.is_free():
            self._session.answer(message_id, self._settings(once))

    def regenerate(self, message_id: int, once: Once = AS_SET) -> None:
        """Answer the question of a reply once more."""
        if self.is_free():
            self._session.regenerate(message_id, self._settings(once))

    def edit(self, message_id: int, text: str) -> None:
        """Send a message again in other words."""
        if self.is_free():
            self._session.edit(message_id, text, self._settings(AS_SET))

    def continue_reading(self, message_id: int) -> None:
        """Answer again the question of a reply whose documents were not read to the end: the rest is read."""
        self.regenerate(message_id)

    def answer_from_what_was_read(self, message_id: int) -> None:
        """Answer again the question of such a reply, from the segments that were read; no more are read."""
        self.regenerate(message_id, Once(reads_on=False))
