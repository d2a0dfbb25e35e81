"""Watches memory on a thread of its own, so that neither the window nor the engine waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from engine import figures
from engine.figures import Phase
from engine.guard import Guard, GuardStep
from engine.memory import MemoryReading, MemorySample, PressureLevel
from engine.memory_limits import MemoryLimits
from engine.memory_sensor import MemorySensor
from engine.pressure import judge

log = logging.getLogger(__name__)

PRESSED_SHARE = 0.5
"""The part of the interval after which the next sample is taken while memory is short."""
IDLE_INTERVALS = 2
"""The intervals between samples once nothing has happened for long."""
IDLE_AFTER_S = 60.0

Subscriber = Callable[[MemorySample, bool], None]
"""Called on the monitor's thread with each sample, and whether the guard's height changed with it."""


class MemoryMonitor:
    """Takes a sample of memory every `interval_s` and gives it to the guard, then to those who subscribed.

    Samples are taken twice as often while memory is short, and half as often, where it `rests`, once the
    engine has been idle and memory normal for a minute.

    Args:
        guard: what decides.
        limits: tells what the user allows now; called on the monitor's thread.
        interval_s: seconds between two samples.
        rests: whether samples become fewer when nothing happens.
        sensor: reads the memory; one that fails is logged once, until it works again.
    """

    def __init__(
        self,
        guard: Guard,
        limits: Callable[[], MemoryLimits],
        *,
        interval_s: float = 1.0,
        rests: bool = True,
        sensor: Callable[[], MemoryReading] | None = None,
    ) -> None:
        self._guard = guard
        self._limits = limits
        self._interval_s = interval_s
        self._rests = rests
        self._sensor = sensor or MemorySensor()
        self._subscribers: tuple[Subscriber, ...] = ()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._quiet_since_s: float | None = None
        self._has_failed = False

    def subscribe(self, on_sample: Subscriber) -> None:
        """Call `on_sample` from the next sample on; what it raises is logged."""
        self._subscribers = (*self._subscribers, on_sample)

    def start(self) -> None:
        """Begin with a first sample, which is taken even where `stop` follows at once."""
        if self._thread is None:
            self._stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=[self._stopped], name="memory monitor", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """End; once this returns no subscriber is called. One that calls it itself gets no further sample."""
        thread, self._thread = self._thread, None
        self._stopped.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self, stopped: threading.Event) -> None:
        while True:
            sample = self._sample()
            if sample is not None:
                self._tell(sample)
            if stopped.wait(self._interval_s if sample is None else self._pause_s(sample)):
                return

    def _tell(self, sample: MemorySample) -> None:
        changed = self._guard.take(sample)
        if changed:
            log.info("The guard is at %s: %s", self._guard.height.name, self._guard.reason)
        for subscriber in self._subscribers:
            try:
                subscriber(sample, changed)
            except Exception:
                log.exception("A subscriber to samples of memory failed")

    def _sample(self) -> MemorySample | None:
        """Return what is so now, None where the sensor fails."""
        try:
            reading = self._sensor()
            pressure = judge(reading, self._limits())
        except Exception:
            if not self._has_failed:
                log.exception("Memory cannot be read; it is tried again every %s s", self._interval_s)
            self._has_failed = True
            return None
        self._has_failed = False
        return MemorySample.of(reading, figures.latest(), pressure.level, pressure.reason, pressure.has_spare)

    def _pause_s(self, sample: MemorySample) -> float:
        """Return the seconds until the next sample."""
        if sample.level is not PressureLevel.NORMAL:
            self._quiet_since_s = None
            return self._interval_s * PRESSED_SHARE
        if sample.engine.phase is not Phase.IDLE or self._guard.height is not GuardStep.NONE:
            self._quiet_since_s = None
            return self._interval_s
        if self._quiet_since_s is None:
            self._quiet_since_s = sample.time_s
        is_idle = self._rests and sample.time_s - self._quiet_since_s >= IDLE_AFTER_S
        return self._interval_s * (IDLE_INTERVALS if is_idle else 1)
