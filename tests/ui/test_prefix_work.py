"""When the engine's thread loads what is open and saves what was read; the engine only takes note."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

import ui.prefix_work
from engine.cancel import CancelToken
from engine.engine import Engine
from engine.errors import Cancelled
from ui.engine_signals import EngineSignals
from ui.held_telling import HeldTelling
from ui.prefix_work import LOAD_AGAIN_S, SAVE_AFTER_S, SAVE_AGAIN_S, SAVE_APART_S, PrefixWork


class NotingEngine:
    """Takes note of what it is asked for; what it is told to is cancelled in the middle, once."""

    def __init__(self) -> None:
        self.loaded: object | None = object()
        self.done: list[str] = []
        self.cancelled = ""
        self.can_save = True
        self.finds_later = False

    def prefetch(self, conversation_id: int, cancel: CancelToken, on_page: Callable[[], None]) -> None:
        self._do(f"load {conversation_id}")

    def save(self, cancel: CancelToken) -> bool:
        self._do("save")
        return self.can_save

    def held(self) -> None:
        """Hold nothing."""

    def _do(self, what: str) -> None:
        self.done.append(what)
        if self.cancelled == what:
            self.cancelled = ""
            raise Cancelled


class Bench:
    """The work on such an engine, with conversation 7 open."""

    def __init__(self) -> None:
        self.engine = NotingEngine()
        self.open_id: int | None = 7
        held = HeldTelling(EngineSignals())
        held.engine = cast(Engine, self.engine)
        self.work = PrefixWork(cast(Engine, self.engine), held, lambda: self.open_id)

    def run(self) -> list[str]:
        """Do what is due, and return what that was."""
        self.engine.done.clear()
        if self.work.is_due:
            self.work.work(CancelToken())
        return list(self.engine.done)


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ui.prefix_work, "SAVE_AFTER_S", 0)


def test_nothing_is_due_before_anything_is_open_or_read(bench: Bench) -> None:
    assert bench.work.due_in_s is None
    assert bench.run() == []


def test_what_is_opened_is_loaded_first_and_then_what_was_read_before_is_saved(bench: Bench) -> None:
    bench.work.opened()
    assert bench.run() == ["load 7", "save"]
    assert bench.work.due_in_s is None


def test_a_model_that_was_loaded_only_looks_for_what_is_open(bench: Bench) -> None:
    bench.work.loaded()
    assert bench.run() == ["load 7"]
    assert bench.work.due_in_s is None


@pytest.mark.usefixtures("no_wait")
def test_what_was_due_is_saved_where_another_model_did_not_fit(bench: Bench) -> None:
    bench.work.used()
    bench.work.loaded()
    assert bench.run() == ["load 7", "save"]


def test_without_a_model_nothing_is_due_and_what_is_open_is_loaded_with_the_next_one(bench: Bench) -> None:
    bench.engine.loaded = None
    bench.work.opened()
    assert bench.work.due_in_s is None
    bench.engine.loaded = object()
    bench.work.loaded()
    assert bench.run()[0] == "load 7"


def test_saving_waits_until_the_engine_has_been_quiet_for_a_while(bench: Bench) -> None:
    bench.work.used()
    assert bench.run() == []
    due_in_s = bench.work.due_in_s
    assert due_in_s is not None and 0 < due_in_s <= SAVE_AFTER_S


@pytest.mark.usefixtures("no_wait")
def test_what_was_read_is_saved_once_when_it_has_been_quiet(bench: Bench) -> None:
    bench.work.used()
    assert bench.run() == ["save"]
    assert bench.run() == []


@pytest.mark.usefixtures("no_wait")
def test_while_one_conversation_stays_open_its_answers_are_not_saved_one_by_one(bench: Bench) -> None:
    bench.work.used()
    assert bench.run() == ["save"]
    bench.work.used()
    assert bench.run() == []
    due_in_s = bench.work.due_in_s
    assert due_in_s is not None and SAVE_AFTER_S < due_in_s <= SAVE_APART_S


@pytest.mark.usefixtures("no_wait")
def test_the_first_answer_after_another_conversation_was_opened_is_saved(bench: Bench) -> None:
    bench.work.used()
    assert bench.run() == ["save"]
    bench.work.used()
    bench.work.opened()
    assert bench.run() == ["load 7", "save"]
    bench.work.used()
    assert bench.run() == ["save"]


@pytest.mark.usefixtures("no_wait")
def test_what_something_else_came_before_is_due_still(bench: Bench) -> None:
    bench.work.opened()
    bench.engine.cancelled = "load 7"
    with pytest.raises(Cancelled):
        bench.run()
    bench.engine.cancelled = "save"
    with pytest.raises(Cancelled):
        bench.run()
    assert bench.engine.done == ["load 7", "save"]
    assert bench.run() == ["save"]


@pytest.mark.usefixtures("no_wait")
def test_what_cannot_be_saved_yet_is_tried_again_after_a_while(bench: Bench) -> None:
    bench.engine.can_save = False
    bench.work.used()
    assert bench.run() == ["save"]
    due_in_s = bench.work.due_in_s
    assert due_in_s is not None and 0 < due_in_s <= SAVE_AGAIN_S


def test_what_cannot_be_found_yet_is_looked_for_again_until_it_can(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.engine.finds_later = True
    bench.work.loaded()
    assert bench.run() == ["load 7"]
    due_in_s = bench.work.due_in_s
    assert due_in_s is not None and 0 < due_in_s <= LOAD_AGAIN_S
    monkeypatch.setattr(ui.prefix_work, "LOAD_AGAIN_S", 0)
    bench.work.loaded()
    assert bench.run() == ["load 7"]
    bench.engine.finds_later = False
    assert bench.run() == ["load 7"]
    assert bench.work.due_in_s is None


def test_what_is_opened_meanwhile_is_loaded_instead(bench: Bench) -> None:
    bench.work.opened()
    bench.engine.cancelled = "load 7"
    with pytest.raises(Cancelled):
        bench.run()
    bench.open_id = 8
    assert bench.run()[0] == "load 8"
