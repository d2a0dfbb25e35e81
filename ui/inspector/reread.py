"""What keeps the cache from what is asked for, and the button that reads the conversation again."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.kv_text import bits_words
from engine.engine import LoadedModel
from engine.errors import OctavoError
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage
from ui.live_precision import HeldCache, Reread
from ui.plain_text import plain_label

_MINUTE_S = 60


class RereadNotice(QWidget):
    """Says why requested and held precision differ, what would make them agree, and what that costs.

    Hidden while they agree.

    Signals:
        requested: the conversation is to be read again.
        stopped: reading it again is to stop.
    """

    requested = Signal()
    stopped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hints: list[str] = []
        self._below: KVUsage | None = None
        self._reread = Reread()
        self._hint = plain_label(wraps=True)
        self._hint.setProperty("kind", "warning")
        self._cost = plain_label(wraps=True)
        self._cost.setProperty("kind", "muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName("Reading again")
        self._button = QPushButton()
        self._button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._button.clicked.connect(self._on_clicked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self._hint, self._cost, self._bar, self._button):
            column.addWidget(widget)
        self._refresh()

    def show_held(self, spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None) -> None:
        """Tell what of `spec` the open conversation's cache does not have; None where none is held."""
        self._hints = _hints(spec, loaded, held)
        self._below = held.usage if held is not None and held.usage.num_below else None
        self._refresh()

    def set_reread(self, reread: Reread) -> None:
        """Show whether the conversation can be read again now, and how far it is."""
        self._reread = reread
        self._refresh()

    def _refresh(self) -> None:
        progress = self._reread.progress
        is_running = progress is not None
        is_offered = is_running or self._below is not None
        _show_text(self._hint, "" if is_running else "\n".join(self._hints))
        _show_text(self._cost, self._cost_text() if is_offered else "")
        self._bar.setVisible(is_running)
        if progress is not None:
            self._bar.setRange(0, max(1, progress.total))
            self._bar.setValue(progress.done)
        self._button.setVisible(is_offered)
        self._button.setText("Stop" if is_running else "Read again")
        is_enabled = is_running or not self._reread.hindrance
        if not is_enabled and self.window().focusWidget() is self._button:
            self.setFocus()  # else Qt moves on to the next field, which takes what is typed
        self._button.setEnabled(is_enabled)
        self.setVisible(bool(self._hints) or is_offered)

    def _cost_text(self) -> str:
        progress = self._reread.progress
        if progress is not None:
            return f"Reading again: {progress.done:,} of {progress.total:,} tokens"
        assert self._below is not None
        tokens = self._below.num_tokens
        time = f", {_about(tokens / self._reread.prefill_tps)}" if self._reread.prefill_tps else ""
        cost = f"Reading again takes {tokens:,} tokens{time}."
        return f"{cost} {self._reread.hindrance}".rstrip()

    def _on_clicked(self) -> None:
        if self._reread.progress is None:
            self.requested.emit()
        else:
            self.stopped.emit()


def _about(seconds: float) -> str:
    """Return a duration as it can be known, on one line: `about 40 s`, `about 3 min`."""
    if seconds < 1:
        return "less than a second"
    if seconds < 10:
        return f"about {seconds:.0f}\N{NO-BREAK SPACE}s"
    if seconds < 2 * _MINUTE_S:
        return f"about {round(seconds, -1):.0f}\N{NO-BREAK SPACE}s"
    return f"about {seconds / _MINUTE_S:.0f}\N{NO-BREAK SPACE}min"


def _show_text(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


def _hints(spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None) -> list[str]:
    hints = []
    if loaded is not None:
        try:
            spec.require_fit(loaded.info.num_layers, loaded.info.num_kv_heads)
        except OctavoError as error:
            hints.append(str(error))
    if held is None:
        return hints
    if (spec.page_tokens, spec.group_size) != (held.kv.page_tokens, held.kv.group_size):
        hints.append(
            "The new page or group size takes effect with the next message, "
            "which reads the conversation again."
        )
    if held.usage.num_below:
        hints.append(_below_text(held.usage))
    return hints


def _below_text(usage: KVUsage) -> str:
    count = usage.num_below
    is_all = usage.effective is not None and count == usage.cold_pages
    at = bits_words(usage.effective) if is_all and usage.effective else "fewer bits"
    pages = "1 page stays" if count == 1 else f"{count:,} pages stay"
    return f"{pages} at {at} until the conversation is read again."
