from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.models.library import InstalledModel
from tests.ui.conftest import WAIT_MS, Desk


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
