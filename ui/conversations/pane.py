"""The left pane: new conversation, search, the list, and the bar that undoes a deletion."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.store.conversations import ConversationStore
from app.store.records import Conversation
from ui.chat.elided_label import ElidedLabel
from ui.conversations.delegate import ConversationDelegate
from ui.conversations.list_model import CONVERSATION_ROLE, ConversationListModel
from ui.plain_text import plain_label
from ui.theme import Theme

_SEARCH_DELAY_MS = 120
_UNDO_MS = 10_000


class ConversationPane(QWidget):
    """Lists the conversations of a store and renames and pins them; opening and deleting are asked for.

    Signals:
        opened: id of the conversation that the user chose.
        chosen: a conversation was clicked, or Enter was pressed on it: the user wants to write there.
        new_requested: the button for a new conversation.
        delete_requested: id of a conversation to delete.
        undo_requested: bring back the conversation that was deleted last.
    """

    opened = Signal(int)
    chosen = Signal()
    new_requested = Signal()
    delete_requested = Signal(int)
    undo_requested = Signal()

    def __init__(self, store: ConversationStore, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidePane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._store = store
        self._current_id: int | None = None
        self._is_stale = False
        self._model = ConversationListModel()
        self._model.renamed.connect(self._rename)
        self._new = QPushButton("New conversation")
        self._new.setProperty("kind", "flat")
        self._new.setStyleSheet("text-align: left; padding-left: 8px;")
        self._new.clicked.connect(self.new_requested)
        self._search = QLineEdit()
        self._search.setPlaceholderText("Search titles")
        self._search.setAccessibleName("Search conversations by title")
        self._search.setClearButtonEnabled(True)
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(_SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(self.refresh)
        self._search.textChanged.connect(self._search_timer.start)
        self._list = self._make_list()
        self._search.installEventFilter(self)
        self._list.installEventFilter(self)
        self._empty = plain_label(wraps=True)
        self._empty.setProperty("kind", "faint")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.undo_bar = UndoBar()
        self.undo_bar.undo_requested.connect(self.undo_requested)
        self._lay_out()
        self._restyle()
        Theme.current().changed.connect(self._restyle)
        self.refresh()

    @property
    def model(self) -> ConversationListModel:
        """The rows shown."""
        return self._model

    def refresh(self) -> None:
        """Read the list again, with the search as typed; a title that is being changed comes first."""
        self._is_stale = self._delegate.is_editing
        if self._is_stale:
            return
        text = self._search.text().strip()
        conversations = self._store.conversations(text)
        position = self._list.verticalScrollBar().value()
        self._model.set_conversations(conversations)
        self._empty.setVisible(not conversations)
        self._list.setVisible(bool(conversations))
        self._empty.setText(f"No title has “{text}” in it." if text else "Your conversations appear here.")
        self._select_current()
        self._list.verticalScrollBar().setValue(position)

    def set_current(self, conversation_id: int | None) -> None:
        """Select the conversation that is open."""
        self._current_id = conversation_id
        self._select_current()

    def set_writing(self, conversation_id: int | None) -> None:
        """Mark the conversation in which a reply is being written."""
        self._model.set_writing(conversation_id)

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def rename_current(self) -> None:
        """Edit the title of the open conversation in place."""
        index = self._model.index_of(self._current_id)
        if index.isValid():
            self._list.setFocus()
            self._list.scrollTo(index)
            self._list.edit(index)

    def toggle_pin_current(self) -> None:
        """Pin the open conversation, or let it go."""
        if self._current_id is not None:
            self._toggle_pin(self._store.conversation(self._current_id))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the arrow keys, Enter and Esc of the search field reach the list, and Enter leave the list."""
        if watched is self._list and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and self._list.currentIndex().isValid():
                self.chosen.emit()
                return True
        if watched is self._search and isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.KeyPress:
                return self._search_key(event.key())
            if event.type() == QEvent.Type.ShortcutOverride and event.key() == Qt.Key.Key_Escape:
                event.setAccepted(bool(self._search.text()))  # Esc clears the field before it stops a reply
                return True
        return super().eventFilter(watched, event)

    def _search_key(self, key: int) -> bool:
        if key == Qt.Key.Key_Escape and self._search.text():
            self._search.clear()
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._search_timer.stop()
            self.refresh()
            shown = self._model.conversations()
            if shown:
                self.opened.emit(shown[0].id)
                self.chosen.emit()
        elif key == Qt.Key.Key_Down:
            self._list.setFocus()
        else:
            return False
        return True

    def _make_list(self) -> QListView:
        view = QListView()
        view.setModel(self._model)
        view.setAccessibleName("Conversations")
        view.setUniformItemSizes(True)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        view.customContextMenuRequested.connect(self._open_menu_at)
        view.clicked.connect(self._on_clicked)
        view.selectionModel().currentChanged.connect(self._on_current_changed)
        self._delegate = ConversationDelegate(view)
        self._delegate.menu_requested.connect(self._open_menu)
        # The view still holds the index that was edited; reset the model once it has let go.
        self._delegate.editing_ended.connect(self._refresh_stale, Qt.ConnectionType.QueuedConnection)
        view.setItemDelegate(self._delegate)
        return view

    def _lay_out(self) -> None:
        top = QVBoxLayout()
        top.setContentsMargins(8, 10, 8, 6)
        top.setSpacing(6)
        top.addWidget(self._new)
        top.addWidget(self._search)
        bottom = QVBoxLayout()
        bottom.setContentsMargins(8, 4, 8, 8)
        bottom.addWidget(self.undo_bar)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(top)
        column.addWidget(self._list, 1)
        column.addWidget(self._empty, 1)
        column.addLayout(bottom)

    def _restyle(self) -> None:
        theme = Theme.current()
        self._new.setIcon(theme.icon("plus"))
        self._new.setIconSize(QSize(18, 18))
        self._list.viewport().update()

    def _select_current(self) -> None:
        selection = self._list.selectionModel()
        blocked = selection.blockSignals(True)
        index = self._model.index_of(self._current_id)
        if index.isValid():
            selection.setCurrentIndex(index, selection.SelectionFlag.ClearAndSelect)
        else:
            selection.clear()
        selection.blockSignals(blocked)
        self._list.viewport().update()

    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        conversation = current.data(CONVERSATION_ROLE) if current.isValid() else None
        if isinstance(conversation, Conversation) and conversation.id != self._current_id:
            self.opened.emit(conversation.id)

    def _on_clicked(self) -> None:
        if not self._delegate.is_editing:  # its menu began to rename
            self.chosen.emit()

    def _open_menu_at(self, position: QPoint) -> None:
        index = self._list.indexAt(position)
        if not self._list.viewport().rect().contains(position) or not index.isValid():
            index = self._list.currentIndex()
        conversation = index.data(CONVERSATION_ROLE) if index.isValid() else None
        if isinstance(conversation, Conversation):
            self._open_menu(conversation.id)

    def _open_menu(self, conversation_id: int) -> None:
        conversation = self._store.conversation(conversation_id)
        index = self._model.index_of(conversation_id)
        theme = Theme.current()
        menu = QMenu(self)
        menu.setAccessibleName(f"Actions for {conversation.title}")
        rename = menu.addAction(theme.icon("edit"), "Rename")
        pin = menu.addAction(theme.icon("pin"), "Unpin" if conversation.pinned else "Pin")
        menu.addSeparator()
        delete = menu.addAction(theme.icon("trash", "danger"), "Delete")
        rect = self._list.visualRect(index)
        chosen = menu.exec(self._list.viewport().mapToGlobal(QPoint(rect.right() - 40, rect.bottom())))
        menu.deleteLater()
        if chosen is rename:
            self._list.edit(self._model.index_of(conversation_id))
        elif chosen is pin:
            self._toggle_pin(conversation)
        elif chosen is delete:
            self.delete_requested.emit(conversation_id)

    def _rename(self, conversation_id: int, title: str) -> None:
        self._store.rename(conversation_id, title)
        self._is_stale = True

    def _refresh_stale(self) -> None:
        if self._is_stale:
            self.refresh()

    def _toggle_pin(self, conversation: Conversation) -> None:
        self._store.set_pinned(conversation.id, not conversation.pinned)
        self.refresh()


class UndoBar(QFrame):
    """Says for ten seconds that a conversation was deleted, and brings it back.

    Signals:
        undo_requested: bring it back.
    """

    undo_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("undoBar")
        self._label = ElidedLabel()
        self._undo = QPushButton("Undo")
        self._undo.setAccessibleName("Undo deleting the conversation")
        self._undo.clicked.connect(self._on_undo)
        self._undo.setToolTip("Undo (Ctrl+Shift+T)")
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_UNDO_MS)
        self._timer.timeout.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.addWidget(self._label, 1)
        row.addWidget(self._undo)
        self.hide()

    def offer(self, title: str) -> None:
        """Offer to bring a conversation back."""
        self._label.setText(f"Deleted “{title}”")
        self.show()
        self._timer.start()

    def _on_undo(self) -> None:
        self.hide()
        self._timer.stop()
        self.undo_requested.emit()
