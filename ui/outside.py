"""What is handed to other programs of the system: links and folders."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

from ui.notifications import Notifications

_SCHEMES = ("http", "https", "mailto")
_MAX_SHOWN_CHARS = 200


class Outside(QObject):
    """Opens links and folders in the system's programs, and says when that is not done."""

    def __init__(self, notifications: Notifications, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._notifications = notifications

    def open_link(self, address: str) -> None:
        """Open a web or mail address; a model may write others, and those are refused."""
        url = QUrl(address)
        if url.scheme() in _SCHEMES:
            self._open(url)
        else:
            shown = address[:_MAX_SHOWN_CHARS]
            self._notifications.info("This link was not opened", f"It is no web or mail address: {shown}")

    def open_folder(self, folder: Path) -> None:
        """Show a folder, made first where it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        self._open(QUrl.fromLocalFile(str(folder)))

    def _open(self, url: QUrl) -> None:
        if not QDesktopServices.openUrl(url):
            shown = url.toLocalFile() or url.toDisplayString()[:_MAX_SHOWN_CHARS]
            self._notifications.warning("Nothing was opened", f"No program was found here that shows {shown}")
