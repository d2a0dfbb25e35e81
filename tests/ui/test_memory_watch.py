from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QThread
from pytestqt.qtbot import QtBot

from engine.guard import Guard, GuardAction, GuardStep
from engine.memory import MemoryReading, MemorySample
from engine.memory_limits import MemoryLimits
from ui.memory_watch import MemoryWatch

GB = 1_000_000_000
SHORT, PLENTY = 50_000_000, 12 * GB


class ScriptedSensor:
    """Reads the free bytes of a script, a second apart, and the last of them from then on."""

    def __init__(self, *free: int) -> None:
        self._free = list(free)
        self._time_s = 0.0

    def __call__(self) -> MemoryReading:
        self._time_s += 10.0
        free = self._free.pop(0) if len(self._free) > 1 else self._free[0]
        return MemoryReading(self._time_s, 16 * GB, free, process_nbytes=GB)


def monitor_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "memory monitor"]


@pytest.fixture
def watches() -> Iterator[list[MemoryWatch]]:
    made: list[MemoryWatch] = []
    yield made
    for watch in made:
        watch.stop()


def watching(watches: list[MemoryWatch], guard: Guard, *free: int) -> MemoryWatch:
    watch = MemoryWatch(guard, MemoryLimits(), interval_s=0.001, sensor=ScriptedSensor(*free))
    watches.append(watch)
    return watch


def test_samples_arrive_in_the_thread_of_the_window(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    threads: list[QThread] = []
    seen: list[MemorySample] = []

    class Listener(QThread):
        def take(self, sample: MemorySample) -> None:
            threads.append(QThread.currentThread())
            seen.append(sample)

    listener = Listener()
    watch.sampled.connect(listener.take)
    watch.start()
    qtbot.waitUntil(lambda: len(seen) >= 3)
    assert set(threads) == {watch.thread()}
    assert watch.history.samples()[:3] == seen[:3]
    assert [sample.available_nbytes for sample in seen[:3]] == [PLENTY] * 3


def test_nothing_runs_after_stop_and_start_begins_again(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    assert monitor_threads() == []
    watch.start()
    assert len(monitor_threads()) == 1
    qtbot.waitUntil(lambda: len(watch.history) > 0)
    watch.stop()
    assert monitor_threads() == []
    count = len(watch.history)
    qtbot.wait(1)
    assert len(watch.history) == count
    watch.start()
    qtbot.waitUntil(lambda: len(watch.history) > count)


def test_stop_hands_out_what_was_sent_before(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    sent = threading.Event()
    watch._monitor.subscribe(lambda sample, changed: sent.set())
    watch.start()
    assert sent.wait(10)
    assert len(watch.history) == 0
    watch.stop()
    assert len(watch.history) > 0


def test_the_engine_is_asked_to_relieve_when_the_guard_moves(
    qtbot: QtBot, watches: list[MemoryWatch]
) -> None:
    guard = Guard()
    watch = watching(watches, guard, PLENTY, PLENTY, SHORT)
    with qtbot.waitSignal(watch.height_changed):
        watch.start()
    watch.stop()
    assert guard.height > GuardStep.NONE


def test_while_memory_is_plenty_the_engine_is_left_alone(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    asked: list[bool] = []
    watch.height_changed.connect(lambda: asked.append(True))
    watch.start()
    qtbot.waitUntil(lambda: len(watch.history) >= 20)
    watch.stop()
    assert asked == []


def test_new_limits_hold_from_the_next_sample_on(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    watch.start()
    qtbot.waitUntil(lambda: len(watch.history) > 0)
    assert watch.history.latest is not None and watch.history.latest.level == 0
    watch.limits = MemoryLimits(most_nbytes=GB // 2)
    qtbot.waitUntil(lambda: watch.history.latest.level > 0)


def test_actions_are_kept_with_their_times(qtbot: QtBot, watches: list[MemoryWatch]) -> None:
    watch = watching(watches, Guard(), PLENTY)
    action = GuardAction(GuardStep.CLEAR_CACHE, False, "swap grows", "40 MB were given back.")
    with qtbot.waitSignal(watch.acted) as acted:
        watch.take_action(action)
    assert acted.args[0].action == action
    assert list(watch.history.events) == acted.args


def test_a_watch_that_goes_without_being_stopped_ends_its_thread_quietly(
    qtbot: QtBot, watches: list[MemoryWatch], caplog: pytest.LogCaptureFixture
) -> None:
    watch = watching(watches, Guard(), PLENTY)
    watch.start()
    qtbot.waitUntil(lambda: len(watch.history) > 0)
    shiboken6.delete(watch)
    watches.remove(watch)
    qtbot.waitUntil(lambda: monitor_threads() == [])
    assert caplog.messages == []
