from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.models.library import ModelLibrary
from app.models.source import STARTER_ID
from app.models.staging import Staging
from app.paths import AppPaths
from tests.ui.conftest import WAIT_MS
from tests.ui.models.test_downloads import hang
from ui.models.download_bar import DownloadBar
from ui.models.downloads import Downloads


@pytest.fixture
def downloads(octavo_home: Path, monkeypatch: pytest.MonkeyPatch) -> Downloads:
    monkeypatch.setattr("ui.models.downloads.get_model", hang)
    return Downloads(ModelLibrary(AppPaths(octavo_home)))


def shown(qtbot: QtBot, downloads: Downloads, source: str) -> DownloadBar:
    bar = DownloadBar(downloads, source, "A model", "Get")
    qtbot.addWidget(bar)
    bar.show()
    return bar


def test_a_stopped_download_is_resumed_only_where_a_part_of_it_is_kept(
    qtbot: QtBot, downloads: Downloads, octavo_home: Path
) -> None:
    part = Staging(AppPaths(octavo_home).models, "org/half").folder
    part.mkdir(parents=True)
    (part / "model.safetensors").write_bytes(b"half")
    for source, words in ((STARTER_ID, "Get"), ("org/half", "Resume")):
        bar = shown(qtbot, downloads, source)
        bar._get.click()
        assert bar._progress.isVisible()
        bar._stop.click()
        qtbot.waitUntil(bar._get.isVisible, timeout=WAIT_MS)
        assert bar._get.text() == words


def test_the_focus_stays_on_the_download(qtbot: QtBot, downloads: Downloads) -> None:
    bar = shown(qtbot, downloads, STARTER_ID)
    bar.activateWindow()
    qtbot.waitUntil(bar.isActiveWindow)
    bar._get.setFocus()
    qtbot.keyClick(bar._get, Qt.Key.Key_Space)
    assert bar._stop.hasFocus()
    qtbot.keyClick(bar._stop, Qt.Key.Key_Space)
    qtbot.waitUntil(bar._get.isVisible, timeout=WAIT_MS)
    assert bar._get.hasFocus()
