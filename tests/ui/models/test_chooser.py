from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QLabel
from pytestqt.qtbot import QtBot

from app.models.catalogue import catalogue
from app.models.library import ModelLibrary
from app.paths import AppPaths
from tests.ui.conftest import WAIT_MS
from ui.models.chooser import ModelChooser
from ui.models.downloads import Downloads


@pytest.fixture
def library(octavo_home: Path) -> ModelLibrary:
    return ModelLibrary(AppPaths.from_environment())


@pytest.fixture
def chooser(qtbot: QtBot, library: ModelLibrary) -> ModelChooser:
    chooser = ModelChooser(library, Downloads(library), None)
    qtbot.addWidget(chooser)
    chooser.show()
    return chooser


def texts(chooser: ModelChooser) -> list[str]:
    return [label.text() for label in chooser._area.widget().findChildren(QLabel)]


def button(chooser: ModelChooser, name: str) -> QAbstractButton:
    return next(item for item in chooser.findChildren(QAbstractButton) if item.accessibleName() == name)


def test_the_catalogue_is_offered(chooser: ModelChooser) -> None:
    assert [title for title in texts(chooser) if title in {entry.title for entry in catalogue()}] == [
        entry.title for entry in catalogue()
    ]
    assert "On this computer" not in texts(chooser)


def test_only_models_that_are_small_enough_are_listed_until_all_are_wanted(
    chooser: ModelChooser,
) -> None:
    sizes = sorted(entry.nbytes for entry in catalogue())
    most = sizes[len(sizes) // 2]
    chooser.show_only(most)
    by_title = {entry.title: entry.nbytes for entry in catalogue()}
    listed = [by_title[title] for title in texts(chooser) if title in by_title]
    assert listed == [size for size in reversed(sizes) if size <= most]
    button(chooser, "Show all models").click()
    assert len([title for title in texts(chooser) if title in by_title]) == len(by_title)


def test_an_imported_model_is_listed_loaded_on_request_and_forgotten(
    qtbot: QtBot, chooser: ModelChooser, library: ModelLibrary, starter_gguf: Path
) -> None:
    chooser.import_path(starter_gguf)
    qtbot.waitUntil(lambda: "On this computer" in texts(chooser), timeout=WAIT_MS)
    (model,) = library.installed()
    with qtbot.waitSignal(chooser.load_requested) as requested:
        button(chooser, f"Load {model.title}").click()
    assert requested.args == [model]
    library.remove(model.id)
    chooser.refresh()
    assert "On this computer" not in texts(chooser)
    assert starter_gguf.exists()


def test_a_file_that_is_no_model_is_refused_with_a_sentence(
    qtbot: QtBot, chooser: ModelChooser, tmp_path: Path
) -> None:
    file = tmp_path / "poem.gguf"
    file.write_text("no model")
    chooser.import_path(file)
    qtbot.waitUntil(chooser._message.isVisible, timeout=WAIT_MS)
    assert "poem.gguf" in chooser._message.text()


def test_enter_in_the_name_field_presses_no_button_and_explains_a_wrong_name(
    qtbot: QtBot, chooser: ModelChooser
) -> None:
    qtbot.keyClicks(chooser._sources._hub_id, "not a name")
    qtbot.keyClick(chooser._sources._hub_id, Qt.Key.Key_Return)
    assert "“not a name” is no model name" in chooser._message.text()
    assert chooser._downloads.sources == []


def test_a_download_that_fails_can_be_tried_again(
    qtbot: QtBot, chooser: ModelChooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    qtbot.keyClicks(chooser._sources._hub_id, "octavo-tests/nothing")
    qtbot.keyClick(chooser._sources._hub_id, Qt.Key.Key_Return)
    assert chooser._downloads.sources == ["octavo-tests/nothing"]
    qtbot.waitUntil(chooser._message.isVisible, timeout=WAIT_MS)
    assert "127.0.0.1" in chooser._message.text()
    assert chooser._downloads.sources == []


def test_a_download_stops_at_once_and_says_so(qtbot: QtBot, library: ModelLibrary) -> None:
    downloads = Downloads(library)
    downloads.start("octavo-tests/nothing")
    assert downloads.status("octavo-tests/nothing") is not None
    with qtbot.waitSignal(downloads.stopped, timeout=WAIT_MS):
        downloads.stop("octavo-tests/nothing")
    assert downloads.status("octavo-tests/nothing") is None
