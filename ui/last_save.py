"""What is done with the conversations before the end."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.store.conversations import ConversationStore
from app.store.errors import StoreError

log = logging.getLogger(__name__)


def save_or_ask(save: Callable[[], None], parent: QWidget) -> None:
    """Call `save` until it raises no `StoreError` or the user gives up on what it would have saved."""
    while True:
        try:
            save()
            return
        except StoreError as error:
            log.exception("not everything could be saved")
            if not _wants_to_try_again(str(error), parent):
                return


def purge(store: ConversationStore) -> None:
    """Remove what was deleted from the disk; where that cannot be, the next start does it."""
    try:
        store.purge_deleted()
    except StoreError:
        log.exception("deleted conversations are not purged yet")


def _wants_to_try_again(reason: str, parent: QWidget) -> bool:
    box = QMessageBox(parent)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText("The last words could not be saved.")
    box.setInformativeText(reason)
    again = box.addButton("Try again", QMessageBox.ButtonRole.AcceptRole)
    box.addButton("Close without saving", QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(again)
    box.setEscapeButton(again)
    box.exec()
    return box.clickedButton() is again
