"""When the speed of a model is measured and told; the engine only takes note."""

from __future__ import annotations

from typing import cast

import pytest
from PySide6.QtTest import QSignalSpy

from app.model_speeds import ModelSpeeds
from app.reading_speed import ReadingSpeed
from app.settings import DEFAULT_KV
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled, OctavoError
from engine.kv.precision import KVSpec
from ui.engine_signals import EngineSignals
from ui.speed_work import SpeedWork

FAST = ReadingSpeed().with_read(0, 100, 1.0).with_written(100, 110, 1.0)


class NotingSpeeds:
    """Knows nothing until it is measured."""

    def __init__(self) -> None:
        self.now = ReadingSpeed()
        self.error: Exception | None = None

    def learn(self) -> ReadingSpeed:
        return self.now

    def measure(self, kv: KVSpec, cancel: CancelToken) -> ReadingSpeed:
        if self.error is not None:
            raise self.error
        self.now = FAST
        return FAST


class Slot:
    """An engine with a model, or without."""

    loaded: object | None = object()


class Bench:
    """The work, and what it tells."""

    def __init__(self) -> None:
        self.speeds, self.engine, told = NotingSpeeds(), Slot(), EngineSignals()
        self.spy = QSignalSpy(told.speed_changed)
        self.work = SpeedWork(
            cast(ModelSpeeds, self.speeds), cast(Engine, self.engine), told, lambda: DEFAULT_KV
        )

    def told(self) -> list[ReadingSpeed]:
        return [self.spy.at(number)[0] for number in range(self.spy.count())]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_speed_of_a_model_that_was_loaded_is_measured_once_and_told(bench: Bench) -> None:
    assert not bench.work.is_due
    bench.work.loaded()
    assert bench.work.is_due
    bench.work.measure(CancelToken())
    assert not bench.work.is_due
    bench.work.learn()
    assert bench.told() == [FAST]


def test_measuring_gives_way_and_is_due_still(bench: Bench) -> None:
    bench.work.loaded()
    bench.speeds.error = Cancelled()
    with pytest.raises(Cancelled):
        bench.work.measure(CancelToken())
    assert bench.work.is_due


def test_what_cannot_be_measured_for_want_of_memory_is_not_tried_again(bench: Bench) -> None:
    bench.work.loaded()
    bench.speeds.error = OctavoError("There is no memory for it.")
    bench.work.measure(CancelToken())
    assert not bench.work.is_due


def test_what_fails_unexpectedly_is_not_tried_again_and_again(bench: Bench) -> None:
    bench.work.loaded()
    bench.speeds.error = RuntimeError("a fault")
    with pytest.raises(RuntimeError):
        bench.work.measure(CancelToken())
    assert not bench.work.is_due


def test_without_a_model_there_is_nothing_to_measure(bench: Bench) -> None:
    bench.engine.loaded = None
    bench.work.loaded()
    assert not bench.work.is_due
