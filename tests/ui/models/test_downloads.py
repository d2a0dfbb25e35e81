from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QThreadPool
from pytestqt.qtbot import QtBot

from app.models.library import ModelLibrary
from app.models.progress import DownloadProgress, ProgressCallback
from app.paths import AppPaths
from engine.cancel import CancelToken
from tests.ui.conftest import WAIT_MS
from ui.background import BackgroundJob
from ui.models.downloads import Downloads


def hang(source: str, library: ModelLibrary, *, cancel: CancelToken, on_progress: ProgressCallback) -> None:
    """A download whose server sends nothing."""
    on_progress(DownloadProgress(0, None, source))
    while True:
        cancel.wait(60)
        cancel.check()


def test_downloads_that_hang_do_not_keep_other_work_waiting(
    qtbot: QtBot, octavo_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.models.downloads.get_model", hang)
    downloads = Downloads(ModelLibrary(AppPaths(octavo_home)))
    for number in range(QThreadPool.globalInstance().maxThreadCount()):
        downloads.start(f"org/model-{number}")
    job = BackgroundJob(lambda cancel, report: "read")
    with qtbot.waitSignal(job.done, timeout=WAIT_MS) as done:
        job.start()
    assert done.args == ["read"]
    for source in downloads.sources:
        downloads.stop(source)
    qtbot.waitUntil(lambda: not downloads.sources, timeout=WAIT_MS)
