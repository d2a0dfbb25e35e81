"""The end of a window while what was read is still being saved."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QPainter, QPaintEvent
from PySide6.QtWidgets import QDialog, QFrame, QMainWindow, QPushButton, QVBoxLayout, QWidget

from ui.engine_thread import EngineThread
from ui.plain_text import plain_label
from ui.theme import Theme

AT_ONCE_S = 0.3
"""What takes no longer than this is not worth a word."""
_WORDS = "Saving what was read…"
_WHY = "So that it need not be read again. This takes ten seconds at most."
_WIDTH = 340
_LEAVING = [QKeySequence(keys) for keys in ("Esc", "Ctrl+Q", "Ctrl+W")]


class SavingCover(QWidget):
    """Covers a window that is closing, says why it is still there, and lets nothing else be done in it.

    Signals:
        leave_requested: the user closes it again, or leaves it with Escape or the button.
    """

    leave_requested = Signal()

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._handle = window.windowHandle()
        self.setAccessibleName(_WORDS)
        title, why = plain_label(_WORDS), plain_label(_WHY, wraps=True)
        title.setProperty("kind", "heading")
        why.setProperty("kind", "muted")
        self._leave = QPushButton("Close now")
        self._leave.setAccessibleName("Close now, without saving the rest")
        self._leave.clicked.connect(self.leave_requested)
        card = QFrame()
        card.setProperty("kind", "card")
        card.setMaximumWidth(_WIDTH)
        column = QVBoxLayout(card)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(10)
        column.addWidget(title)
        column.addWidget(why)
        column.addWidget(self._leave, 0, Qt.AlignmentFlag.AlignRight)
        middle = QVBoxLayout(self)
        middle.addWidget(card, 0, Qt.AlignmentFlag.AlignCenter)

    def show_over(self) -> None:
        """Cover the window, close its dialogs, and keep keys, files and its own closing from all else."""
        for widget in (self._window.menuBar(), self._window.centralWidget()):
            if widget is not None:
                widget.setEnabled(False)
        self._window.setAcceptDrops(False)
        for dialog in self._window.findChildren(QDialog):
            if dialog.isVisible():
                dialog.reject()
        self.setGeometry(self._window.rect())
        self.raise_()
        self.show()
        self._leave.setFocus()
        _application().installEventFilter(self)

    def take_away(self) -> None:
        """Hide, and leave the keys to what is asked next."""
        _application().removeEventFilter(self)
        self.hide()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: D102
        match event.type():
            case QEvent.Type.Resize if watched is self._window:
                self.setGeometry(self._window.rect())
            case QEvent.Type.ShortcutOverride:
                event.accept()  # no menu takes a key now
                return True
            case QEvent.Type.Close if watched is self._handle:
                self.leave_requested.emit()
                return True
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: D102
        if QKeySequence(event.keyCombination()) in _LEAVING:
            self.leave_requested.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: D102
        veil = Theme.current().palette.color("window")
        veil.setAlphaF(0.8)
        QPainter(self).fillRect(event.rect(), veil)


class Ending:
    """Ends the engine's thread when a window closes, which may take a while; a second time at once."""

    def __init__(self, window: QMainWindow, engine: EngineThread) -> None:
        self._window = window
        self._engine = engine
        self._is_begun = False

    def end_engine(self) -> None:
        """Let the engine save what was read and end; where that takes a while, say so in the window."""
        self._is_begun = True
        self._engine.begin_end()
        if not self._engine.has_ended(AT_ONCE_S):
            self._wait()
        self._engine.shutdown()

    def leave(self) -> bool:
        """Save no more, where the end has begun; return whether it has."""
        if self._is_begun:
            self._engine.leave()
        return self._is_begun

    def _wait(self) -> None:
        cover, loop = SavingCover(self._window), QEventLoop()
        cover.leave_requested.connect(self._engine.leave)
        self._engine.ended.connect(loop.quit)
        cover.show_over()
        loop.exec()
        cover.take_away()


def _application() -> QCoreApplication:
    app = QCoreApplication.instance()
    assert app is not None
    return app
