"""The Memory panel: how short memory is, what takes it, and what was done about it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine.engine import LoadedModel
from engine.memory import MemorySample
from engine.memory_limits import MemoryLimits
from ui.inspector.fold import Fold
from ui.inspector.memory.curve import MemoryCurve
from ui.inspector.memory.event_list import GuardEventList
from ui.inspector.memory.export import CsvExport
from ui.inspector.memory.gauge import PressureGauge
from ui.inspector.memory.legend import MemoryLegend
from ui.inspector.memory.limits_editor import LimitsEditor
from ui.inspector.memory.parts import PHASE_WORDS
from ui.inspector.memory.pause_notice import PauseNotice
from ui.inspector.memory.phase_key import PhaseKey
from ui.inspector.memory.plan_table import PlanTable
from ui.inspector.memory.span_buttons import SpanButtons
from ui.memory_history import GuardEvent
from ui.memory_watch import MemoryWatch
from ui.plain_text import plain_label


class MemoryPanel(QWidget):
    """Shows what a `MemoryWatch` keeps and edits the limits.

    Attributes:
        gauge, curve, legend, plan, events, pause, limits, export: its parts.

    Signals:
        limits_changed: the `MemoryLimits` that the user set.
        go_on_requested: a reply that waits for memory should go on.
        failed: the error that kept the figures from a file.
    """

    limits_changed = Signal(object)
    go_on_requested = Signal()
    failed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._watch: MemoryWatch | None = None
        self.gauge = PressureGauge()
        self.pause = PauseNotice()
        self.pause.go_on_requested.connect(self.go_on_requested)
        self._spans = SpanButtons()
        self.curve = MemoryCurve()
        self._spans.chosen.connect(self.curve.set_span)
        self.curve.read_changed.connect(self._show_reading)
        self._moment = plain_label("Now")
        self._moment.setProperty("kind", "faint")
        self._moment.setAccessibleName("Moment that is read")
        self.legend = MemoryLegend()
        self.plan = PlanTable()
        self._no_model = plain_label(
            "No model has been loaded yet. Once one is, you see here what it takes, as it happens.",
            wraps=True,
        )
        self._no_model.setProperty("kind", "muted")
        self.events = GuardEventList()
        self.limits = LimitsEditor()
        self.limits.limits_changed.connect(self._on_limits)
        self.export = CsvExport()
        self.export.failed.connect(self.failed)
        self._lay_out()

    def set_watch(self, watch: MemoryWatch) -> None:
        """Show the samples and actions of `watch`, those so far and those to come."""
        self._watch = watch
        self.export.set_history(watch.history)
        for sample in watch.history.recent:
            self.curve.append(sample)
        if watch.history.latest is not None:
            self._on_sample(watch.history.latest, is_new=False)
        self._show_events()
        watch.sampled.connect(self._on_sample)
        watch.acted.connect(self._on_act)

    def set_model(self, loaded: LoadedModel | None) -> None:
        """Show the figures from the first model on; they stay when it is ejected."""
        if loaded is not None:
            self.show_figures()

    def show_figures(self) -> None:
        """Show the figures in place of the words that there are none yet."""
        self._no_model.hide()
        self._figures.show()

    def set_limits(self, limits: MemoryLimits) -> None:
        """Show the limits, silently."""
        self.limits.set_limits(limits)
        self._mark_limit(limits)

    def _lay_out(self) -> None:
        self._figures = QWidget()
        figures = _column(self._figures)
        head = QHBoxLayout()
        head.addWidget(_heading("In use"), 1)
        head.addWidget(self._spans)
        figures.addLayout(head)
        figures.addWidget(self.curve)
        figures.addWidget(PhaseKey())
        figures.addWidget(self._moment)
        figures.addWidget(self.legend)
        figures.addWidget(_line())
        figures.addWidget(_heading("Plan and actual"))
        figures.addWidget(self.plan)
        figures.addWidget(_line())
        figures.addWidget(_heading("Memory guard"))
        figures.addWidget(self.events)
        self._figures.hide()
        column = _column(self)
        column.addWidget(self.pause)
        column.addWidget(_heading("Memory of this computer"))
        column.addWidget(self.gauge)
        column.addWidget(_line())
        column.addWidget(self._no_model)
        column.addWidget(self._figures)
        column.addWidget(_line())
        column.addWidget(Fold("Limits", self.limits))
        column.addWidget(self.export)

    def _on_sample(self, sample: MemorySample, is_new: bool = True) -> None:
        if is_new:
            self.curve.append(sample)
        self.gauge.show_sample(sample)
        self.plan.show_figures(sample.engine)
        self.limits.set_total(sample.total_nbytes)
        self.export.refresh()
        self._show_pause()
        self._show_reading(self.curve.read)

    def _on_act(self, event: GuardEvent) -> None:
        self._show_events()

    def _show_events(self) -> None:
        if self._watch is not None:
            self.events.show_events(self._watch.history.events)
            self.curve.set_events(self._watch.history.events)
            self._show_pause()

    def _show_pause(self) -> None:
        event = self._watch.history.pause() if self._watch is not None else None
        self.pause.show_pause(event.action if event is not None else None)

    def _show_reading(self, read: MemorySample | None) -> None:
        """Show the values of the moment that is read, else the newest."""
        latest = self._watch.history.latest if self._watch is not None else None
        shown = read or latest
        if shown is None or latest is None:
            return
        when = "Now" if read is None else _ago(latest.time_s - shown.time_s)
        self._moment.setText(f"{when} · {PHASE_WORDS[shown.engine.phase]}")
        self.legend.show_sample(shown)
        total, *parts = (f"{name} {text}" for name, text in self.legend.rows)
        self.curve.setAccessibleDescription(f"{self._moment.text()}. {total}: {', '.join(parts)}.")

    def _on_limits(self, limits: MemoryLimits) -> None:
        self._mark_limit(limits)
        self.limits_changed.emit(limits)

    def _mark_limit(self, limits: MemoryLimits) -> None:
        self.gauge.set_limit(limits.most_nbytes)
        self.curve.set_limit(limits.most_nbytes)


def _column(widget: QWidget) -> QVBoxLayout:
    column = QVBoxLayout(widget)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(10)
    return column


def _heading(text: str) -> QWidget:
    label = plain_label(text)
    label.setProperty("kind", "heading")
    return label


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("kind", "line")
    return line


def _ago(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s ago" if minutes else f"{rest} s ago"
