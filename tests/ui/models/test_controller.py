from __future__ import annotations

import dataclasses
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.models.library import InstalledModel
from app.profiles import CUSTOM
from app.settings import DEFAULT_CUSTOM, Settings, save_settings
from engine.admission import AdmissionError, LowerPrecision, SmallerModel
from engine.kv.precision import KVSpec
from engine.memory_limits import MemoryLimits
from tests.engine.folders import write_folder
from tests.ui.conftest import LOAD_MS, WAIT_MS, Desk
from ui.engine_worker import EngineState
from ui.models.chooser import ModelChooser


def test_a_model_that_is_removed_is_gone_and_not_loaded_at_the_next_start(
    desk: Desk, qtbot: QtBot, starter_gguf: Path
) -> None:
    window = desk.open()
    model = window.models.library.import_path(starter_gguf)
    window._settings.update(model=str(model.path))
    with qtbot.waitSignal(window.models.library_changed, timeout=WAIT_MS):
        window.models.remove(model)
    assert window.models.library.installed() == []
    assert not window.models.has_models
    assert desk.chosen().model is None


def test_a_model_that_cannot_be_removed_is_told(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    window = desk.open()
    window.models.remove(InstalledModel("nothing", tmp_path, "Nothing", 1, managed=True))
    bar = window.centre.notification_bar
    qtbot.waitUntil(lambda: bar.notice is not None, timeout=WAIT_MS)
    assert bar.notice is not None and "no model “nothing”" in bar.notice.message


def offered(desk: Desk) -> dict[str, QPushButton]:
    """Return the buttons with what would fit, by their words."""
    panel = desk.window.centre.load_refusal
    buttons = [] if panel.isHidden() else panel.findChildren(QPushButton)
    return {button.text(): button for button in buttons if not button.isHidden()}


def test_a_model_that_does_not_fit_at_the_start_is_refused_and_loads_after_a_choice(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny", max_position_embeddings=2_048)
    custom = dataclasses.replace(DEFAULT_CUSTOM, max_context=1_024)
    limits = MemoryLimits(most_nbytes=1)
    settings = Settings(model=str(folder), memory=limits, profile=CUSTOM, custom=custom)
    save_settings(desk.paths.settings_file, settings)
    window = desk.open()
    window.start([])
    qtbot.waitUntil(lambda: offered(desk) != {}, timeout=LOAD_MS)
    assert list(offered(desk)) == ["Try again", "Load anyway…"]
    texts = [label.text() for label in window.centre.load_refusal.findChildren(QLabel)]
    assert "tiny was not loaded" in texts
    assert any("a context of 1,024 tokens" in text for text in texts)
    assert window._engine.loaded is None
    assert desk.chosen().model == str(folder)
    window._settings.update(memory=MemoryLimits())
    offered(desk)["Try again"].click()
    qtbot.waitUntil(lambda: window._engine.state is EngineState.READY, timeout=LOAD_MS)
    assert window._engine.loaded is not None
    assert offered(desk) == {}
    assert window.focusWidget() is window.composer.edit


def test_a_lower_precision_is_one_click_and_kept_in_the_profile(
    desk: Desk, qtbot: QtBot, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "tiny")
    window = desk.open()
    window.start([])
    four_bit = KVSpec.parse("4")
    error = AdmissionError("No.", needed_nbytes=2, available_nbytes=1, choices=(LowerPrecision(four_bit, 9),))
    window._engine.load_refused.emit(folder, error)
    offered(desk)["Use 4-bit KV cache"].click()
    qtbot.waitUntil(lambda: window._engine.loaded is not None, timeout=LOAD_MS)
    assert window.profile.value.kv == four_bit


def test_a_smaller_model_is_chosen_among_those_that_fit(desk: Desk, qtbot: QtBot, tmp_path: Path) -> None:
    window = desk.open()
    error = AdmissionError("No.", needed_nbytes=2, available_nbytes=1, choices=(SmallerModel(400_000_000),))
    window._engine.load_refused.emit(tmp_path / "large", error)
    seen: list[str] = []

    def look() -> None:
        chooser = window.findChild(ModelChooser)
        seen.extend(label.text() for label in chooser.findChildren(QLabel))
        chooser.reject()

    QTimer.singleShot(0, look)
    offered(desk)["Choose a smaller model…"].click()
    assert "Models of at most 400 MB" in seen
