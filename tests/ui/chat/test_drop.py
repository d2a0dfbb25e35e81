from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QSignalSpy
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from ui.chat.composer import Composer
from ui.chat.drop import (
    DropOverlay,
    FileData,
    data_from_mime,
    paths_from_mime,
    refusal,
    refused_urls,
)

_SIGNALS = ("dropped", "data_dropped", "text_dropped", "refused")


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


def test_an_address_an_image_a_promise_and_nothing_are_refused_each_with_what_to_do() -> None:
    address, image, promise, nothing = QMimeData(), QMimeData(), QMimeData(), QMimeData()
    address.setUrls([QUrl("https://example.org/x.pdf")])
    image.setImageData(QImage(4, 4, QImage.Format.Format_RGB32))
    promise.setUrls([QUrl("imap-message://someone@example.org/INBOX#7")])
    promise.setData("application/x-moz-file-promise", b"\0")
    nothing.setData("application/x-unknown", b"\0")
    assert "Download it first" in refusal(address)
    assert "Images cannot be read" in refusal(image)
    assert "Save the file first" in refusal(promise)
    assert "no file and no text" in refusal(nothing)


def test_a_document_that_comes_as_bytes_is_taken_with_an_ending_by_its_type() -> None:
    mime = QMimeData()
    mime.setData("application/pdf", b"%PDF-1.7")
    assert data_from_mime(mime) == FileData("Dropped document.pdf", b"%PDF-1.7")
    mime = QMimeData()
    mime.setText("plain")
    assert data_from_mime(mime) is None


@pytest.mark.parametrize(
    ("make", "signal"),
    [
        (lambda mime: mime.setUrls([QUrl.fromLocalFile("/tmp/a.pdf")]), "dropped"),
        (lambda mime: mime.setData("application/pdf", b"%PDF-1.7"), "data_dropped"),
        (lambda mime: mime.setText("words"), "text_dropped"),
        (lambda mime: mime.setUrls([QUrl("https://example.org/")]), "refused"),
    ],
)
def test_whatever_is_dropped_is_taken_or_refused(
    qtbot: QtBot, make: Callable[[QMimeData], None], signal: str
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    overlay = DropOverlay(window)
    spies = {name: QSignalSpy(getattr(overlay, name)) for name in _SIGNALS}
    mime = QMimeData()
    make(mime)
    drop_on(window, mime)
    assert {name: spy.count() for name, spy in spies.items()} == {name: int(name == signal) for name in spies}


def test_text_that_is_dropped_on_the_field_stays_in_the_other_program(composer: Composer) -> None:
    mime = QMimeData()
    mime.setText("words")
    drop_on(composer.edit.viewport(), mime, Qt.KeyboardModifier.ShiftModifier)  # which asks for a move
    assert composer.text == "words"


def drop_on(
    window: QWidget, mime: QMimeData, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    both = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    what = (both, mime, Qt.MouseButton.LeftButton, keys)
    with warnings.catch_warnings():
        # From 6.12 on PySide6 wants a QPointF here, which 6.11 does not take.
        warnings.filterwarnings("ignore", ".*QDragEnterEvent", DeprecationWarning)
        entering = QDragEnterEvent(QPoint(5, 5), *what)
    QApplication.sendEvent(window, entering)
    assert entering.isAccepted()
    event = QDropEvent(QPointF(5, 5), *what)
    QApplication.sendEvent(window, event)
    assert event.isAccepted() and event.dropAction() is Qt.DropAction.CopyAction  # never moved away
