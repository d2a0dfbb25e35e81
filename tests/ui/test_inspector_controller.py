"""What the panels of the right pane show of the engine and the settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from engine.memory_limits import MemoryLimits
from engine.sampling import SamplingParams
from tests.engine.small_engine import FOUR, write_small_model
from tests.ui.conftest import Desk, figure
from ui.engine_worker import EngineState
from ui.inspector.pages.map_view import PageMapView
from ui.main_window import MainWindow

WAIT_MS = 60_000


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def window(desk: Desk, qtbot: QtBot, model: Path) -> MainWindow:
    window = desk.open_with_model(model, SamplingParams(temperature=0, max_tokens=4), FOUR)
    window.resize(1240, 800)
    return window


def ask(window: MainWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window._engine.reply_finished, timeout=WAIT_MS):
        window.chat.send("The ship sailed north. " * 10)
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=WAIT_MS)


def num_cells(window: MainWindow) -> int:
    shown = window.inspector.pages.findChild(PageMapView)
    return shown.num_cells if shown.isVisible() else 0


def test_pages_of_an_ejected_model_are_shown_no_more(window: MainWindow, qtbot: QtBot, model: Path) -> None:
    window.inspector.tabs.show_panel("Pages")
    ask(window, qtbot)
    qtbot.waitUntil(lambda: num_cells(window) > 3, timeout=WAIT_MS)

    with qtbot.waitSignal(window._engine.model_unloaded, timeout=WAIT_MS):
        window.models.eject()
    window.panels.refresh()
    assert num_cells(window) == 0

    with qtbot.waitSignal(window._engine.model_loaded, timeout=WAIT_MS):
        window._engine.load(model, FOUR)
    window.panels.refresh()
    assert num_cells(window) == 0


def test_limits_change_at_once_what_is_said_to_fit(window: MainWindow) -> None:
    before = figure(window.inspector.precision, "Context that fits")
    assert before == "all 4,096 tokens"
    window.inspector.memory.limits_changed.emit(
        dataclasses.replace(MemoryLimits(), most_nbytes=1_000_000_000, reserve_nbytes=999_900_000)
    )
    assert figure(window.inspector.precision, "Context that fits") != before
