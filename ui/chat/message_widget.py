"""What user messages and replies have in common."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QEnterEvent, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.ledger.context import SpanState
from app.store.records import Message
from ui.chat.buttons import ActionBar, CopyButton, IconButton
from ui.markdown.style import MarkdownStyle


class VersionSwitcher(QWidget):
    """`‹ 2 / 3 ›`: the versions of one message; the arrow keys go through them as well.

    Signals:
        sibling_requested: another version is wanted, by its message id.
    """

    sibling_requested = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._previous_id = self._next_id = -1
        self._previous = IconButton("chevron-left", "Previous version", self)
        self._next = IconButton("chevron-right", "Next version", self)
        self._label = QLabel()
        self._label.setProperty("kind", "faint")
        self._previous.clicked.connect(self._ask_previous)
        self._next.clicked.connect(self._ask_next)
        for button in self.focus_stops:
            button.installEventFilter(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(1)
        for widget in (self._previous, self._label, self._next):
            row.addWidget(widget)

    @property
    def focus_stops(self) -> list[QWidget]:
        """The arrows, in order."""
        return [self._previous, self._next]

    def show_versions(self, message: Message, *, is_enabled: bool) -> None:
        """Show where `message` stands among its siblings; hidden when it is the only one."""
        siblings = message.siblings
        self.setVisible(len(siblings) > 1)
        if len(siblings) < 2:
            return
        place = siblings.index(message.id)
        self._previous_id = siblings[place - 1] if place > 0 else -1
        self._next_id = siblings[place + 1] if place + 1 < len(siblings) else -1
        self._label.setText(f"{place + 1} / {len(siblings)}")
        self._previous.setEnabled(is_enabled and self._previous_id >= 0)
        self._next.setEnabled(is_enabled and self._next_id >= 0)

    @property
    def has_focus(self) -> bool:
        """Whether the keyboard is here."""
        return self._previous.hasFocus() or self._next.hasFocus()

    def take_focus(self) -> None:
        """Bring the keyboard here."""
        button = self._next if self._next.isEnabled() else self._previous
        button.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            sides = {Qt.Key.Key_Left: self._previous, Qt.Key.Key_Right: self._next}
            button = sides.get(Qt.Key(event.key()))
            if button is not None:
                button.click()
                return True
        return super().eventFilter(watched, event)

    def restyle(self) -> None:
        """Take the theme's colours of now."""
        self._previous.restyle()
        self._next.restyle()

    def _ask_previous(self) -> None:
        self.sibling_requested.emit(self._previous_id)

    def _ask_next(self) -> None:
        self.sibling_requested.emit(self._next_id)


class MessageWidget(QWidget):
    """One message of the conversation.

    Attributes:
        message: the row that is shown.

    Signals:
        sibling_requested: another version is wanted, by its message id.
        link_activated: a link was clicked, or chosen with the keyboard.
        drag_moved: the mouse moves with a selection in hand, at this global position.
        focus_stops_changed: something that takes the focus came; this widget.
    """

    sibling_requested = Signal(int)
    link_activated = Signal(str)
    drag_moved = Signal(QPoint)
    focus_stops_changed = Signal(object)

    def __init__(self, message: Message, style: MarkdownStyle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self.text_style = style
        self.are_actions_enabled = True
        self.versions = VersionSwitcher(self)
        self.versions.sibling_requested.connect(self.sibling_requested)
        self.action_bar = ActionBar(self)
        self.copy_button = CopyButton("Copy message", self.message_text, quiet=True)
        self.action_bar.add(self.copy_button)

    @property
    def focus_stops(self) -> list[QWidget]:
        """What Tab goes through, in reading order."""
        raise NotImplementedError

    def message_text(self) -> str:
        """The whole message as it was written."""
        return self.message.text

    def set_latest(self, is_latest: bool) -> None:
        """Keep the actions in sight on the newest message."""
        self.action_bar.set_pinned(is_latest)

    def show_documents(self, states: Mapping[int, SpanState]) -> None:
        """Say of documents, by their ids, where the model does not read them themselves."""

    def set_actions_enabled(self, is_enabled: bool) -> None:
        """Allow what would change the conversation, or not while a reply is written."""
        self.are_actions_enabled = is_enabled
        self.versions.show_versions(self.message, is_enabled=is_enabled)

    def apply_style(self, style: MarkdownStyle) -> None:
        """Take fonts and colours from `style`."""
        self.text_style = style
        self.versions.restyle()
        self.action_bar.restyle()
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: D102
        self.action_bar.set_hovered(True)
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: D102
        self.action_bar.set_hovered(False)
        super().leaveEvent(event)
