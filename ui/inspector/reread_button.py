"""The button that reads the conversation again, with what that costs and how far it is."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.duration_words import short_duration
from ui.live_precision import Reread
from ui.plain_text import plain_label


class RereadButton(QWidget):
    """Says what reading again costs before it is done, and offers to stop while it is.

    Signals:
        requested: the conversation is to be read again.
        stopped: reading it again is to stop.
    """

    requested = Signal()
    stopped = Signal()

    def __init__(self, title: str, tip: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title
        self._num_tokens: int | None = None
        self._reread = Reread()
        self._cost = plain_label(wraps=True)
        self._cost.setProperty("kind", "muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Reading again")
        self._button = QPushButton()
        self._button.setToolTip(tip)
        self._button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._button.clicked.connect(self._on_clicked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self._cost, self._bar, self._button):
            column.addWidget(widget)
        self._refresh()

    @property
    def is_running(self) -> bool:
        """Whether the conversation is being read again."""
        return self._reread.progress is not None

    @property
    def is_offered(self) -> bool:
        """Whether there is something to read again, or it is being done."""
        return self.is_running or self._num_tokens is not None

    def show_tokens(self, num_tokens: int | None) -> None:
        """Offer to read so many tokens again, None for nothing."""
        self._num_tokens = num_tokens
        self._refresh()

    def set_reread(self, reread: Reread) -> None:
        """Show whether that can be done now, and how far it is."""
        self._reread = reread
        self._refresh()

    def _refresh(self) -> None:
        progress = self._reread.progress
        self._cost.setText(self._cost_text())
        self._bar.setVisible(progress is not None)
        if progress is not None:
            self._bar.setRange(0, max(1, progress.total))
            self._bar.setValue(progress.done)
        self._button.setText("Stop" if self.is_running else self._title)
        is_enabled = self.is_running or not self._reread.hindrance
        if not is_enabled and self.window().focusWidget() is self._button:
            self.setFocus()  # else Qt moves on to the next field, which takes what is typed
        self._button.setEnabled(is_enabled)
        self.setVisible(self.is_offered)

    def _cost_text(self) -> str:
        progress = self._reread.progress
        if progress is not None:
            return f"Reading again: {progress.done:,} of {progress.total:,} tokens"
        if self._num_tokens is None:
            return ""
        speed = self._reread.prefill_tps
        time = f", {short_duration(self._num_tokens / speed)}" if speed else ""
        cost = f"Reading again takes about {self._num_tokens:,} tokens{time}."
        return f"{cost} {self._reread.hindrance}".rstrip()

    def _on_clicked(self) -> None:
        if self.is_running:
            self.stopped.emit()
        else:
            self.requested.emit()
