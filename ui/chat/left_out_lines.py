"""The lines in a conversation below messages that the model no longer reads itself."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.ledger.left_out import LeftOutRun
from ui.chat.context_line import ContextLine
from ui.chat.message_widget import MessageWidget
from ui.chat.scroller import ConversationScroller


class LeftOutLines(QObject):
    """Keeps a line where each run of such messages ends, as far as the message below it has a widget.

    Signals:
        ledger_requested: what the model reads in place of some messages is to be shown, by its key.
    """

    ledger_requested = Signal(str)

    def __init__(self, scroller: ConversationScroller, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._scroller = scroller
        self._runs: dict[int | None, LeftOutRun] = {}
        self._lines: dict[str, ContextLine] = {}

    def set_runs(self, runs: Sequence[LeftOutRun]) -> None:
        """Have lines for other runs the next time that lines are drawn."""
        self._runs = {run.below_id: run for run in runs}

    def has_run_above(self, message_id: int) -> bool:
        """Whether a run ends above a message."""
        return message_id in self._runs

    def focus_stops(self, below_id: int | None) -> list[QWidget]:
        """Return what Tab comes to in the line above a message, or at the end with None."""
        run = self._runs.get(below_id)
        line = self._lines.get(run.key) if run is not None else None
        return [] if line is None else list(line.focus_stops)

    def draw(self, widgets: Sequence[MessageWidget]) -> list[MessageWidget | None]:
        """Put a line where a run ends; away with those where none does, or what is below has no widget.

        Return the messages that have a line above them, None for one at the end.
        """
        places: dict[int | None, MessageWidget | None] = {each.message.id: each for each in widgets}
        if widgets:
            places[None] = None
        drawn = {run.key: run for below_id, run in self._runs.items() if below_id in places}
        for key in self._lines.keys() - drawn.keys():
            line = self._lines.pop(key)
            self._scroller.set_divider(line, None)
            line.deleteLater()
        for key, run in drawn.items():
            line = self._lines[key] = self._lines.get(key) or self._make(run)
            line.show_run(run)
            below = places[run.below_id]
            self._scroller.set_divider(line, below, at_end=below is None)
        return [places[run.below_id] for run in drawn.values()]

    def _make(self, run: LeftOutRun) -> ContextLine:
        line = ContextLine(run)
        line.ledger_requested.connect(self.ledger_requested)
        return line
