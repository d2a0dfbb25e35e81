"""The Context panel on the open conversation, with an engine that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.ledger.entries import EntryKind, EntryState, LedgerEntry
from engine.sampling import SamplingParams
from tests.engine.small_engine import FOUR, write_small_model
from tests.ui.conftest import Desk
from ui.engine_state import EngineState
from ui.inspector.context.actions import LedgerAction
from ui.main_window import MainWindow

WAIT_MS = 60_000
QUESTIONS = ("The ship sailed north. " * 10, "The owls hunt at night. " * 10, "What comes next?")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def window(desk: Desk, qtbot: QtBot, model: Path) -> MainWindow:
    """A window with three turns, whose Context panel is looked at."""
    window = desk.open_with_model(model, SamplingParams(temperature=0, max_tokens=6), FOUR)
    window.resize(1240, 800)
    window.inspector.tabs.show_panel("Context")
    for question in QUESTIONS:
        with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
            window.chat.send(question)
        wait_until_ready(window, qtbot)
    return window


def wait_until_ready(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)


def rows(window: MainWindow) -> dict[str, LedgerEntry]:
    model = window.inspector.context.view.model()
    return {key: index.data(256) for key, index in model.indexes().items()}


def turns(window: MainWindow) -> list[LedgerEntry]:
    return [entry for entry in rows(window).values() if entry.kind is EntryKind.TURN]


def ask_for(window: MainWindow, action: LedgerAction, *keys: str) -> None:
    window.inspector.context.requested.emit(action, keys)


def choose(window: MainWindow, key: str) -> None:
    view = window.inspector.context.view
    view.clearSelection()
    view.setCurrentIndex(view.model().indexes()[key])


def test_turns_show_what_the_engine_holds_of_them(window: MainWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: all(turn.nbytes for turn in turns(window)), timeout=WAIT_MS)
    first, second, third = turns(window)
    assert first.title.startswith("The ship sailed") and not first.is_about
    # Tokens are bytes: the question's own, and at least the answer's six and a marker.
    assert len(QUESTIONS[0].strip()) + 6 < (first.tokens or 0) < len(QUESTIONS[0]) + 60
    held = window.precision.held
    assert held is not None
    assert sum(turn.tokens or 0 for turn in (first, second, third)) <= held.usage.num_tokens


def test_a_turn_that_is_left_out_leaves_the_cache_at_once_and_comes_back_by_undo(
    window: MainWindow, qtbot: QtBot
) -> None:
    first, second, _ = turns(window)
    qtbot.waitUntil(lambda: window.precision.held is not None, timeout=WAIT_MS)
    before = window.precision.held.usage.num_tokens
    ask_for(window, LedgerAction.DROP, second.key)
    assert rows(window)[second.key].state is EntryState.LEFT_OUT

    def has_left() -> bool:
        return before - window.precision.held.usage.num_tokens >= len(QUESTIONS[1].strip())

    qtbot.waitUntil(has_left, timeout=WAIT_MS)
    window.inspector.context.undo_requested.emit()
    assert rows(window)[second.key].state.is_in_context
    assert rows(window)[first.key].state is EntryState.IN_CONTEXT


def test_pins_are_kept_and_taken_back(window: MainWindow) -> None:
    first = turns(window)[0]
    ask_for(window, LedgerAction.PIN, first.key)
    assert rows(window)[first.key].is_pinned
    ask_for(window, LedgerAction.UNPIN, first.key)
    assert not rows(window)[first.key].is_pinned


def test_the_cost_of_restoring_is_told_before_it_is_done(window: MainWindow, qtbot: QtBot) -> None:
    second = turns(window)[1]
    ask_for(window, LedgerAction.DROP, second.key)
    with qtbot.waitSignal(window._engine.reading_cost_told, timeout=WAIT_MS):
        choose(window, second.key)
    told = window.inspector.context._cost.text()
    assert told.startswith("Restoring ")
    assert rows(window)[second.key].state is EntryState.LEFT_OUT


def test_a_summary_that_was_asked_for_takes_the_place_of_its_turn_and_can_be_undone(
    window: MainWindow, qtbot: QtBot
) -> None:
    first = turns(window)[0]
    with qtbot.waitSignal(window._engine.ledger_changed, timeout=WAIT_MS):
        ask_for(window, LedgerAction.SUMMARIZE, first.key)
    wait_until_ready(window, qtbot)
    assert rows(window)[first.key].state is EntryState.SUMMARIZED
    (summary,) = [entry for entry in rows(window).values() if entry.kind is EntryKind.SUMMARY]
    assert [part.key for part in summary.parts] == [first.key]

    window.inspector.context.undo_requested.emit()
    assert not [entry for entry in rows(window).values() if entry.kind is EntryKind.SUMMARY]
    assert rows(window)[first.key].state.is_in_context


def test_nothing_is_changed_while_a_reply_is_written(window: MainWindow, qtbot: QtBot) -> None:
    pin = window.inspector.context.actions_of_rows.pin
    choose(window, turns(window)[0].key)
    assert pin.isEnabled()
    with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
        with qtbot.waitSignal(window._engine.reply_started, timeout=WAIT_MS):
            window.chat.send("Wait.")
        assert not pin.isEnabled() and pin.toolTip() == "Wait until the reply is written."
    wait_until_ready(window, qtbot)
    qtbot.waitUntil(pin.isEnabled)


def test_an_ejected_model_leaves_the_words_and_no_figures(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window._engine.model_unloaded, timeout=WAIT_MS):
        window.models.eject()
    assert [turn.nbytes for turn in turns(window)] == [None] * 3
    assert [turn.tokens for turn in turns(window)] == [None] * 3
    choose(window, turns(window)[0].key)
    summarize = window.inspector.context.actions_of_rows.summarize
    assert not summarize.isEnabled() and summarize.toolTip() == "Load a model first."
