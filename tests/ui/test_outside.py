from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from pytestqt.qtbot import QtBot

from ui.notifications import Notice, Notifications
from ui.outside import Outside

ADDRESS = "https://example.org/a?b=c"


class Told:
    """What the user was told."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.notifications = Notifications()
        self.notifications.posted.connect(self.notices.append)
        self.outside = Outside(self.notifications)


class Browser(QObject):
    """Takes web addresses in the place of the system's browser."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


@pytest.fixture
def told(qtbot: QtBot) -> Told:
    return Told()


def test_a_web_address_goes_to_the_browser(told: Told) -> None:
    browser = Browser()
    QDesktopServices.setUrlHandler("https", browser, "open")
    told.outside.open_link(ADDRESS)
    QDesktopServices.unsetUrlHandler("https")
    assert browser.opened == [ADDRESS]
    assert told.notices == []


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", "file:///etc/passwd", "/etc/passwd", "data:text/html,x", "smb://host/x"],
)
def test_other_addresses_are_refused_and_that_is_said(told: Told, address: str) -> None:
    browser = Browser()
    for scheme in ("javascript", "file", "data", "smb"):
        QDesktopServices.setUrlHandler(scheme, browser, "open")
    told.outside.open_link(address)
    for scheme in ("javascript", "file", "data", "smb"):
        QDesktopServices.unsetUrlHandler(scheme)
    assert browser.opened == []
    assert [address in notice.message for notice in told.notices] == [True]


def test_a_missing_browser_and_a_missing_file_manager_are_said(told: Told, tmp_path: Path) -> None:
    if QGuiApplication.platformName() != "offscreen":
        pytest.skip("a program may be there")
    told.outside.open_link(ADDRESS)
    told.outside.open_folder(tmp_path / "logs")
    assert [ADDRESS in told.notices[0].message, str(tmp_path / "logs") in told.notices[1].message] == [
        True,
        True,
    ]
    assert (tmp_path / "logs").is_dir()
