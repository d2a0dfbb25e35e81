from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from engine.guard import Guard
from engine.memory_limits import MemoryLimits
from tests.ui.inspector.memory.samples import story
from ui.inspector.memory.panel import MemoryPanel
from ui.memory_watch import MemoryWatch
from ui.theme import Theme

PANEL_WIDTH = 227
"""Of the narrowest pane, beside its margins and the scroll bar."""


@pytest.fixture
def watch(qapp: object) -> MemoryWatch:
    """A watch that is not started and knows the story."""
    watch = MemoryWatch(Guard(), MemoryLimits())
    watch.history = story()
    return watch


@pytest.fixture
def panel(qtbot: QtBot, watch: MemoryWatch) -> MemoryPanel:
    """A panel of the narrowest pane that shows the story."""
    Theme.current().set_choice("light")
    panel = MemoryPanel()
    qtbot.addWidget(panel)
    panel.set_watch(watch)
    panel.show_figures()
    panel.resize(PANEL_WIDTH, 900)
    panel.show()
    qtbot.waitExposed(panel)
    return panel
