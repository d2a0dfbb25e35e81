"""What keeps the cache from what is asked for, and the button that reads the conversation again."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.kv_text import bits_words
from engine.engine import LoadedModel
from engine.errors import OctavoError
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage
from ui.inspector.reread_button import RereadButton
from ui.live_precision import HeldCache, Reread
from ui.plain_text import plain_label


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
        self._hint = plain_label(wraps=True)
        self._hint.setProperty("kind", "warning")
        self._button = RereadButton("Read again")
        self._button.requested.connect(self.requested)
        self._button.stopped.connect(self.stopped)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self._hint)
        column.addWidget(self._button)
        self._refresh()

    def show_held(self, spec: KVSpec, loaded: LoadedModel | None, held: HeldCache | None) -> None:
        """Tell what of `spec` the open conversation's cache does not have; None where none is held."""
        self._hints = _hints(spec, loaded, held)
        has_lost = held is not None and bool(held.usage.num_below)
        self._button.show_tokens(held.usage.num_tokens if held is not None and has_lost else None)
        self._refresh()

    def set_reread(self, reread: Reread) -> None:
        """Show whether the conversation can be read again now, and how far it is."""
        self._button.set_reread(reread)
        self._refresh()

    def _refresh(self) -> None:
        hints = "" if self._button.is_running else "\n".join(self._hints)
        self._hint.setText(hints)
        self._hint.setVisible(bool(hints))
        self.setVisible(bool(self._hints) or self._button.is_offered)


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
