"""Brings what the memory monitor sees into the window's thread, and keeps it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Signal

from engine.guard import Guard, GuardAction
from engine.memory import MemoryReading, MemorySample
from engine.memory_limits import MemoryLimits
from engine.monitor import MemoryMonitor
from ui.memory_history import GuardEvent, MemoryHistory


class MemoryWatch(QObject):
    """Owns the `MemoryMonitor`; all that it tells arrives in the thread that made it.

    Attributes:
        limits: what the user allows; may be replaced at any time.
        history: the samples and actions so far.

    Signals:
        sampled(MemorySample): a sample, already part of the history.
        acted(GuardEvent): the guard did something; already part of the history.
        height_changed(): the guard wants more or less given up than before: the engine should be asked.
    """

    sampled = Signal(object)
    acted = Signal(object)
    height_changed = Signal()
    _received = Signal(object, bool)

    def __init__(
        self,
        guard: Guard,
        limits: MemoryLimits,
        parent: QObject | None = None,
        *,
        interval_s: float = 1.0,
        sensor: Callable[[], MemoryReading] | None = None,
    ) -> None:
        super().__init__(parent)
        self.limits = limits
        self.history = MemoryHistory()
        self._monitor = MemoryMonitor(guard, lambda: self.limits, interval_s=interval_s, sensor=sensor)
        self._monitor.subscribe(self._on_sample)
        self._received.connect(self._take)

    def start(self) -> None:
        """Begin with a first sample at once."""
        self._monitor.start()

    def stop(self) -> None:
        """End the monitor's thread and hand out what it had still sent."""
        self._monitor.stop()
        QCoreApplication.sendPostedEvents(self, QEvent.Type.MetaCall)

    def take_action(self, action: GuardAction) -> None:
        """Keep what the guard did just now."""
        event = GuardEvent(time.monotonic(), datetime.now(), action)
        self.history.events.append(event)
        self.acted.emit(event)

    def _on_sample(self, sample: MemorySample, has_moved: bool) -> None:
        """Pass a sample on from the monitor's thread, as long as there is somebody to tell."""
        try:
            self._received.emit(sample, has_moved)
        except RuntimeError:  # Qt has deleted this object: the program ended without `stop`
            self._monitor.stop()

    def _take(self, sample: MemorySample, has_moved: bool) -> None:
        self.history.add(sample)
        self.sampled.emit(sample)
        if has_moved:
            self.height_changed.emit()
