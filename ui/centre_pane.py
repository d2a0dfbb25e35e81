"""The middle of the window: what it says, the conversation and the field to write in."""

from __future__ import annotations

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from ui.admission import RefusalPanel
from ui.busy_bar import BusyBar
from ui.chat.composer import Composer
from ui.chat.view import ChatView
from ui.models.downloads import Downloads
from ui.notifications import NotificationBar
from ui.top_bar import TopBar
from ui.welcome import Welcome

_LEAST_HEIGHT = 48
"""What is left of the conversation in a low window: what is said above and below it comes first."""


class CentrePane(QWidget):
    """Stacks the widgets; the main window connects them.

    Attributes:
        top_bar, notification_bar, load_refusal, welcome, view, busy_bar, composer: the widgets from top to
            bottom; the welcome stands in for the view of an empty conversation.
    """

    def __init__(self, downloads: Downloads, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("centrePane")
        self.setMinimumWidth(420)
        self.top_bar = TopBar()
        self.notification_bar = NotificationBar()
        self.load_refusal = RefusalPanel("Load anyway…")
        self.welcome = Welcome(downloads)
        self.view = ChatView()
        self.busy_bar = BusyBar()
        self.composer = Composer()
        self.load_refusal.gone.connect(self.composer.setFocus)  # else Qt moves the focus on to a setting
        self._stack = QStackedWidget()
        self._stack.addWidget(self.welcome)
        self._stack.addWidget(self.view)
        self._stack.setMinimumHeight(_LEAST_HEIGHT)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.top_bar)
        column.addLayout(_framed(self.notification_bar, 16, 8, 16, 0))
        column.addLayout(_framed(self.load_refusal, 16, 8, 16, 0))
        column.addWidget(self._stack, 1)
        column.addLayout(_framed(self.busy_bar, 24, 0, 24, 6))
        column.addWidget(self.composer)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: D102
        super().resizeEvent(event)
        self.composer.fit_into(self.height())

    def show_conversation(self, has_messages: bool) -> None:
        """Show the conversation, or the welcome while it is empty."""
        self._stack.setCurrentWidget(self.view if has_messages else self.welcome)


def _framed(widget: QWidget, left: int, top: int, right: int, bottom: int) -> QVBoxLayout:
    frame = QVBoxLayout()
    frame.setContentsMargins(left, top, right, bottom)
    frame.addWidget(widget)
    return frame
