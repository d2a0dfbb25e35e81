from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from engine import figures
from engine.figures import EngineFigures, Phase
from engine.guard import Guard, GuardStep
from engine.memory import MemoryReading, MemorySample, PressureLevel
from engine.memory_limits import MemoryLimits
from engine.monitor import IDLE_AFTER_S, MemoryMonitor
from tests.engine.memory_samples import GB, MB, reading

WAIT_S = 10.0
SHORT_S = 0.0001

Started = Callable[..., MemoryMonitor]


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def started(guard: Guard) -> Iterator[Started]:
    """Starts monitors, which end with the test; no thread may be left then."""
    before = threading.active_count()
    monitors = []

    def start(
        sensor: Callable[[], MemoryReading],
        *subscribers: Callable[[MemorySample, bool], None],
        limits: MemoryLimits | None = None,
    ) -> MemoryMonitor:
        monitor = MemoryMonitor(guard, lambda: limits or MemoryLimits(), interval_s=SHORT_S, sensor=sensor)
        for subscriber in subscribers:
            monitor.subscribe(subscriber)
        monitor.start()
        monitors.append(monitor)
        return monitor

    yield start
    for monitor in monitors:
        monitor.stop()
    assert threading.active_count() == before


class Received:
    """What a subscriber got."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[MemorySample, bool]] = queue.SimpleQueue()

    def __call__(self, sample: MemorySample, changed: bool) -> None:
        self._queue.put((sample, changed))

    def next(self) -> tuple[MemorySample, bool]:
        return self._queue.get(timeout=WAIT_S)


def seconds(**changes: object) -> Callable[[], MemoryReading]:
    """Return a sensor whose readings are a second apart."""
    time_s = count()
    return lambda: reading(time_s=float(next(time_s)), **changes)


def test_samples_come_judged_and_with_what_the_engine_says(started: Started) -> None:
    received = Received()
    figures.publish(EngineFigures(phase=Phase.DECODE, weights_nbytes=7))
    try:
        started(seconds(process_nbytes=1900 * MB), received, limits=MemoryLimits(most_nbytes=2 * GB))
        sample, changed = received.next()
    finally:
        figures.publish(EngineFigures())
    assert not changed
    assert (sample.level, sample.reason) == (
        PressureLevel.WARNING,
        "Octavo takes 1.9 of the 2.0 GB that it may",
    )
    assert (sample.engine.phase, sample.engine.weights_nbytes) == (Phase.DECODE, 7)


def test_the_guard_climbs_with_what_the_sensor_says(started: Started, guard: Guard) -> None:
    received = Received()
    started(seconds(available_nbytes=100 * MB), received)
    changes = [received.next()[1] for _ in range(4)]
    assert changes == [False, True, True, True]
    assert guard.height >= GuardStep.SPILL_IDLE


def test_a_subscriber_that_fails_is_logged_and_the_others_go_on(
    started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    received = Received()

    def fail(sample: MemorySample, changed: bool) -> None:
        raise RuntimeError("broken")

    with caplog.at_level(logging.ERROR):
        started(seconds(), fail, received)
        received.next()
        received.next()
    assert "broken" in caplog.text


def test_a_sensor_that_fails_is_logged_once_and_tried_again(
    started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    received, calls = Received(), count()

    def sensor() -> MemoryReading:
        if next(calls) < 5:
            raise OSError("no /proc")
        return reading()

    with caplog.at_level(logging.ERROR):
        started(sensor, received)
        received.next()
    assert [record.exc_info is not None for record in caplog.records] == [True]


def test_after_stop_nobody_is_called(started: Started) -> None:
    received = Received()
    late = []
    monitor = started(seconds(), received, lambda sample, changed: late.append(sample))
    received.next()
    monitor.stop()
    told = len(late)
    assert not [thread for thread in threading.enumerate() if thread.name == "memory monitor"]
    assert len(late) == told


def test_one_that_is_stopped_at_once_has_told_of_one_sample(started: Started) -> None:
    told: list[MemorySample] = []
    started(seconds(), lambda sample, changed: told.append(sample)).stop()
    assert told


def test_a_subscriber_may_stop_it(started: Started) -> None:
    ended = threading.Event()

    def stop(sample: MemorySample, changed: bool) -> None:
        monitor.stop()
        ended.set()

    monitor = MemoryMonitor(Guard(), MemoryLimits, interval_s=SHORT_S, sensor=seconds())
    monitor.subscribe(stop)
    threads = set(threading.enumerate())
    monitor.start()
    assert ended.wait(WAIT_S)
    for thread in set(threading.enumerate()) - threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()


def test_it_can_be_started_again(started: Started) -> None:
    received = Received()
    monitor = started(seconds(), received)
    received.next()
    monitor.stop()
    again = Received()
    monitor.subscribe(again)
    monitor.start()
    again.next()


@pytest.mark.parametrize(
    ("changes", "expected_s"),
    [({}, 1.0), ({"available_nbytes": 700 * MB}, 0.5)],
    ids=["normal", "short"],
)
def test_short_memory_is_looked_at_twice_as_often(
    guard: Guard, changes: dict[str, int], expected_s: float
) -> None:
    monitor = MemoryMonitor(guard, MemoryLimits, interval_s=1.0, sensor=seconds(**changes))
    assert pause_after(monitor) == expected_s


def test_a_minute_of_nothing_is_looked_at_half_as_often(guard: Guard) -> None:
    monitor = MemoryMonitor(guard, MemoryLimits, interval_s=1.0, sensor=seconds())
    pauses = [pause_after(monitor) for _ in range(int(IDLE_AFTER_S) + 2)]
    assert set(pauses[: int(IDLE_AFTER_S)]) == {1.0}
    assert pauses[-1] == 2.0
    steady = MemoryMonitor(guard, MemoryLimits, interval_s=1.0, rests=False, sensor=seconds())
    assert {pause_after(steady) for _ in range(int(IDLE_AFTER_S) + 2)} == {1.0}
    figures.publish(EngineFigures(phase=Phase.PREFILL))
    try:
        assert pause_after(monitor) == 1.0
    finally:
        figures.publish(EngineFigures())


def pause_after(monitor: MemoryMonitor) -> float:
    """Return the seconds that the monitor would wait after its next sample."""
    sample = monitor._sample()
    assert sample is not None
    return monitor._pause_s(sample)


def test_ten_steady_minutes_of_a_busy_machine_ask_for_nothing(started: Started, guard: Guard) -> None:
    """What a machine with old swap, a full page cache and other programs at work looks like."""
    received = Received()
    time_s = count()

    def sensor() -> MemoryReading:
        second = next(time_s)
        wave = (second % 60) * 20 * MB
        return reading(
            time_s=float(second),
            available_nbytes=int(2.5 * GB) - wave,
            swap_nbytes=3 * GB,
            swap_rate=15 * MB if second % 45 < 3 else 0.0,
            stalled=0.35 if second % 90 == 0 else 0.02,
            process_nbytes=int(1.5 * GB) + wave // 4,
        )

    started(sensor, received, limits=MemoryLimits(most_nbytes=3 * GB))
    assert not any(received.next()[1] for _ in range(600))
    assert guard.height is GuardStep.NONE
