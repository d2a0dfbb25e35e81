"""Deleting conversations, and bringing them back as long as the window is open."""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut

from ui.conversation_switcher import ConversationSwitcher
from ui.conversations.pane import ConversationPane


class ConversationDeletion(QObject):
    """Stands between the list of conversations, which asks for a deletion, and the one that is open.

    Signals:
        changed: a conversation was deleted or brought back.
    """

    changed = Signal()

    def __init__(
        self, pane: ConversationPane, switcher: ConversationSwitcher, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._pane = pane
        self._switcher = switcher
        pane.delete_requested.connect(self.delete)
        pane.undo_requested.connect(self.undo)
        key = QShortcut(QKeySequence.StandardKey.Delete, pane)
        key.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        key.activated.connect(self.delete_open)

    def delete_open(self) -> None:
        """Delete the conversation that is open."""
        conversation_id = self._switcher.open_id
        if conversation_id is not None:
            self.delete(conversation_id)

    def delete(self, conversation_id: int) -> None:
        """Delete a conversation and offer to bring it back."""
        self._pane.undo_bar.offer(self._switcher.delete(conversation_id))
        self.changed.emit()

    def undo(self) -> None:
        """Bring back what was deleted last."""
        self._pane.undo_bar.hide()
        self._switcher.undo_delete()
        self.changed.emit()
