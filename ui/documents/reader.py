"""Opens documents and passages of them beside the conversation."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.documents.places import Places
from app.store.conversations import ConversationStore
from app.store.errors import StoreError
from app.store.records import Attachment
from ui.chat.view import ChatView
from ui.chat_controller import ChatController
from ui.documents.side_pane import SidePane
from ui.notifications import Notifications
from ui.pane_folding import PaneFolding


class DocumentReader(QObject):
    """Shows the text of an attachment in the side pane, and puts the inspector back.

    Escape closes it, from anywhere in the window where nothing else has a use for that key.
    """

    def __init__(
        self,
        store: ConversationStore,
        chat: ChatController,
        view: ChatView,
        side: SidePane,
        folding: PaneFolding,
        notifications: Notifications,
    ) -> None:
        """Follow what `chat` and `view` ask for; `folding` shows and hides the side pane."""
        super().__init__(chat)
        self._store = store
        self._side = side
        self._folding = folding
        self._notifications = notifications
        self._shown: Attachment | None = None
        self._was_shown = True
        self._was_folded = False
        self._focus: QWidget | None = None
        chat.text_wanted.connect(self.open)
        chat.opened.connect(self.close)
        view.passage_requested.connect(self.open_passage)
        side.reader.closed.connect(self.close)
        folding.hidden.connect(self._on_hidden)
        side.window().installEventFilter(self)

    @property
    def is_open(self) -> bool:
        """Whether a document is shown."""
        return self._side.has_document

    def open(self, attachment_id: int) -> None:
        """Show the text of a document."""
        self.open_passage(attachment_id, 0, 0)

    def open_passage(self, attachment_id: int, start: int, stop: int) -> None:
        """Show a passage of a document, marked: its first character, and the one behind its last."""
        try:
            attachment = self._store.attachment(attachment_id)
        except StoreError as error:
            self._notifications.error("The document cannot be shown", error)
            return
        reader = self._side.reader
        if not self.is_open:
            self._shown = None
            self._focus = self._side.window().focusWidget()
            self._was_shown = not self._side.isHidden()
            self._was_folded = self._side in self._folding.folded
            self._side.show_document(True)
            self._folding.last = self._side
        self._folding.set_wanted(self._side, True)
        if attachment != self._shown:
            places = Places.of(attachment.text, attachment.kind, attachment.page_starts)
            reader.show_document(attachment, places)
            self._shown = attachment
        reader.show_passage(start, stop)
        reader.text.setFocus(Qt.FocusReason.OtherFocusReason)

    def close(self) -> None:
        """Put back what was there before the document, and the keyboard where it was."""
        if not self.is_open:
            return
        self._side.show_document(False)
        self._folding.last = None
        if self._was_folded:
            self._folding.fold(self._side)
        else:
            self._folding.set_wanted(self._side, self._was_shown)
        focus, self._focus = self._focus, None
        if focus is not None and isValid(focus) and focus.isVisible():
            focus.setFocus(Qt.FocusReason.OtherFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if (
            isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.KeyPress
            and event.key() == Qt.Key.Key_Escape
            and self.is_open
        ):
            self.close()
            return True
        return super().eventFilter(watched, event)

    def _on_hidden(self, pane: QWidget) -> None:
        """Let the button that hides the side pane close the document."""
        if pane is self._side and self.is_open:
            self._was_shown = self._was_folded = False
            self.close()
