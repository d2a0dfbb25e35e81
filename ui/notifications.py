"""What the program has to say: one bar above the conversation, and the hooks for unexpected exceptions."""

from __future__ import annotations

import enum
import logging
import platform
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from engine.errors import OctavoError, sentence_of
from ui.chat.focus_order import chain_before
from ui.plain_text import plain_label
from ui.theme import Theme

log = logging.getLogger(__name__)
_INFO_MS = 8000
_PACKAGES = ("octavo", "PySide6_Essentials", "mlx", "mlx-lm")


class Level(enum.Enum):
    """How serious a notice is."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class NoticeAction:
    """A button of a notice: its words, and what it does. The notice is closed then."""

    text: str
    press: Callable[[], None]


@dataclass(frozen=True)
class Notice:
    """One thing to say.

    Attributes:
        level: how serious it is.
        title: a few words.
        message: a sentence.
        details: for errors, what a developer needs.
        actions: what can be done about it.
        topic: a newer notice of the same topic takes its place; empty for none.
    """

    level: Level
    title: str
    message: str
    details: str = ""
    actions: tuple[NoticeAction, ...] = ()
    topic: str = ""


def versions() -> str:
    """Return the versions of the program, of what it stands on, and of the system, one a line."""
    lines = []
    for package in _PACKAGES:
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return "\n".join([*lines, f"Python {platform.python_version()}", platform.platform()])


class Notifications(QObject):
    """Takes notices from any thread and hands them out in the UI thread.

    Signals:
        posted: a `Notice`, in the thread that made this object.
        withdrawn: the topic of notices that are no longer true.
    """

    posted = Signal(object)
    withdrawn = Signal(str)
    _received = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._received.connect(self._on_received)

    def post(self, notice: Notice) -> None:
        """Show `notice`; may be called from any thread."""
        self._received.emit(notice)

    def withdraw(self, topic: str) -> None:
        """Take notices of a topic away."""
        self.withdrawn.emit(topic)

    def info(self, title: str, message: str) -> None:
        """Say something that is good to know."""
        self.post(Notice(Level.INFO, title, message))

    def warning(self, title: str, message: str) -> None:
        """Say something that asks for attention."""
        self.post(Notice(Level.WARNING, title, message))

    def error(self, title: str, error: BaseException | str, details: str = "", *, topic: str = "") -> None:
        """Say that something failed; an exception that is not for the user is described as unexpected."""
        if isinstance(error, BaseException):
            details = details or "".join(traceback.format_exception(error))
            message = sentence_of(error)
        else:
            message = error
        self.post(Notice(Level.ERROR, title, message, details, topic=topic))

    def install_hooks(self) -> None:
        """Make unexpected exceptions of every thread a notice and a log entry, instead of the end."""
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception

    @staticmethod
    def remove_hooks() -> None:
        """Put Python's own hooks back."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            QGuiApplication.quit()
            return
        log.error("unexpected exception", exc_info=(kind, error, trace))
        title = "That did not work" if isinstance(error, OctavoError) else "Something went wrong"
        self.error(title, error.with_traceback(trace))

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            self._on_exception(args.exc_type, args.exc_value, args.exc_traceback)

    def _on_received(self, notice: Notice) -> None:
        self.posted.emit(notice)


class NotificationBar(QFrame):
    """Shows the newest notice; closing it brings the one before back. Information goes by itself."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Notification")
        self._notices: list[Notice] = []
        self._icon = QLabel()
        self._title = plain_label()
        self._title.setProperty("kind", "heading")
        self._message = plain_label(wraps=True)
        self._actions = QHBoxLayout()
        self._actions.setSpacing(4)
        self._copy = QPushButton("Copy details")
        self._copy.setProperty("kind", "flat")
        self._copy.setAccessibleName("Copy details of the error")
        self._copy.clicked.connect(self._copy_details)
        self._close = QToolButton()
        self._close.setAccessibleName("Close the notification")
        self._close.setToolTip("Close")
        self._close.clicked.connect(self.close_notice)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.close_notice)
        self._lay_out()
        self.hide()
        Theme.current().changed.connect(self._refresh)

    @property
    def notice(self) -> Notice | None:
        """The notice shown now."""
        return self._notices[-1] if self._notices else None

    def show_notice(self, notice: Notice) -> None:
        """Show `notice` above the ones that wait."""
        self._notices = [
            old
            for old in self._notices
            if old.level is not Level.INFO and old != notice and (not old.topic or old.topic != notice.topic)
        ] + [notice]
        self._refresh()
        announcement = QAccessibleAnnouncementEvent(self, f"{notice.title}. {notice.message}")
        if notice.level is Level.ERROR:
            announcement.setPoliteness(QAccessible.AnnouncementPoliteness.Assertive)
        QAccessible.updateAccessibility(announcement)

    def close_notice(self) -> None:
        """Close the notice shown now."""
        if self._notices:
            self._notices.pop()
        self._refresh()

    def withdraw(self, topic: str) -> None:
        """Take the notices of a topic away."""
        self._notices = [notice for notice in self._notices if notice.topic != topic]
        self._refresh()

    def clear(self) -> None:
        """Close every notice."""
        self._notices.clear()
        self._refresh()

    def _lay_out(self) -> None:
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self._title)
        texts.addWidget(self._message)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 10, 8, 10)
        row.setSpacing(10)
        row.addWidget(self._icon)
        row.addLayout(texts, 1)
        row.addLayout(self._actions)
        row.addWidget(self._copy)
        row.addWidget(self._close)

    def _refresh(self) -> None:
        notice = self.notice
        self.setVisible(notice is not None)
        self._timer.stop()
        if notice is None:
            return
        role = "danger" if notice.level is Level.ERROR else notice.level.value
        icon = "error" if notice.level is Level.ERROR else notice.level.value
        self._icon.setPixmap(Theme.current().pixmap(icon, 20, role))
        self._close.setIcon(Theme.current().icon("close"))
        self._title.setText(notice.title)
        self._message.setText(notice.message)
        self._show_actions(notice)
        self._copy.setVisible(notice.level is Level.ERROR)
        self._copy.setText("Copy details")
        self.setProperty("notice", notice.level.value)
        for widget in (self, self._title):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
        if notice.level is Level.INFO:
            self._timer.start(_INFO_MS)

    def _show_actions(self, notice: Notice) -> None:
        while (item := self._actions.takeAt(0)) is not None:
            button = item.widget()
            if button is not None:
                button.hide()
                button.deleteLater()
        buttons: list[QPushButton] = []
        for action in notice.actions:
            button = QPushButton(action.text)
            button.setAccessibleName(f"{action.text}: {notice.title}")
            button.clicked.connect(lambda _=False, action=action: self._press(notice, action))
            self._actions.addWidget(button)
            button.show()
            buttons.append(button)
        chain_before(self._copy, buttons)  # else Tab comes to them last of all in the window

    def _press(self, notice: Notice, action: NoticeAction) -> None:
        if notice in self._notices:
            self._notices.remove(notice)
        self._refresh()
        action.press()

    def _copy_details(self) -> None:
        if self.notice is not None:
            parts = [self.notice.title, self.notice.message, self.notice.details.strip(), versions()]
            QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))
            self._copy.setText("Copied")
