from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QUrl
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from ui.chat.drop import DropOverlay, paths_from_mime, refused_urls


def test_only_local_files_are_taken_each_once(tmp_path: Path) -> None:
    mime = QMimeData()
    local = QUrl.fromLocalFile(str(tmp_path / "ä b.pdf"))
    mime.setUrls([local, QUrl("https://example.org/x.pdf"), local, QUrl.fromLocalFile(str(tmp_path))])
    assert paths_from_mime(mime) == [tmp_path / "ä b.pdf", tmp_path]
    assert refused_urls(mime) == ["https://example.org/x.pdf"]


def test_plain_text_brings_no_files() -> None:
    mime = QMimeData()
    mime.setText("/etc/passwd")
    assert paths_from_mime(mime) == []


def test_the_overlay_covers_its_window_also_when_that_grows(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(300, 200)
    window.show()
    overlay = DropOverlay(window)
    assert not overlay.isVisible()
    overlay.show_over()
    assert overlay.geometry() == window.rect()
    window.resize(500, 400)
    QApplication.processEvents()
    assert overlay.geometry() == window.rect()
