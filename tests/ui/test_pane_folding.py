from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QSplitter, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from ui.pane_folding import PaneFolding

LEFT, CENTRE, RIGHT = 200, 420, 250


class Panes:
    """A window with a pane on each side of a centre."""

    def __init__(self, qtbot: QtBot) -> None:
        self.window = QWidget()
        qtbot.addWidget(self.window)
        self.window.setMinimumSize(440, 300)
        splitter = QSplitter()
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(1)
        panes = []
        for width in (LEFT, CENTRE, RIGHT):
            pane = QWidget()
            pane.setMinimumWidth(width)
            splitter.addWidget(pane)
            panes.append(pane)
        layout = QVBoxLayout(self.window)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(splitter)
        self.folding = PaneFolding(self.window, splitter)
        self.toggles = []
        for pane in (panes[0], panes[2]):
            toggle = QPushButton(checkable=True)
            qtbot.addWidget(toggle)
            self.folding.add(pane, toggle, QAction(self.window, checkable=True))
            self.toggles.append(toggle)
        self.window.resize(1000, 500)
        self.window.show()

    @property
    def shown(self) -> str:
        return "".join(
            letter for letter, toggle in zip("LR", self.toggles, strict=True) if toggle.isChecked()
        )


@pytest.fixture
def panes(qtbot: QtBot) -> Panes:
    return Panes(qtbot)


def test_panes_fold_from_the_right_and_come_back(panes: Panes) -> None:
    everything = LEFT + CENTRE + RIGHT + 2
    for width, shown in (
        (everything, "LR"),
        (everything - 1, "L"),
        (LEFT + CENTRE + 1, "L"),
        (LEFT + CENTRE, ""),
        (440, ""),
        (LEFT + CENTRE + 1, "L"),
        (everything - 1, "L"),
        (everything, "LR"),
    ):
        panes.window.resize(width, 500)
        assert panes.shown == shown
        assert panes.window.width() == width


def test_a_pane_that_the_user_hid_stays_hidden(panes: Panes) -> None:
    panes.toggles[1].setChecked(False)
    panes.window.resize(500, 500)
    assert panes.shown == ""
    panes.window.resize(1000, 500)
    assert panes.shown == "L"


def test_a_pane_that_the_user_wants_takes_the_room_of_the_other(qtbot: QtBot, panes: Panes) -> None:
    panes.window.resize(700, 500)
    assert panes.shown == "L"
    qtbot.mouseClick(panes.toggles[1], Qt.MouseButton.LeftButton)
    assert panes.shown == "R"
    assert panes.window.width() == 700
    panes.window.resize(1000, 500)
    assert panes.shown == "LR"


def test_the_window_grows_for_a_pane_that_has_no_room_at_all(qtbot: QtBot, panes: Panes) -> None:
    panes.window.resize(500, 500)
    qtbot.mouseClick(panes.toggles[1], Qt.MouseButton.LeftButton)
    assert panes.shown == "R"
    assert panes.window.width() == CENTRE + RIGHT + 1
