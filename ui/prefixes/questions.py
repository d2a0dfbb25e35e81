"""What is asked before something on disk is deleted that was not selected one by one."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from engine.wording import format_nbytes


def may_clear(parent: QWidget, nbytes: int) -> bool:
    """Ask whether to delete all that is kept on disk."""
    question = (
        f"Delete all that the prefix cache keeps? {format_nbytes(nbytes)} become free. Conversations and "
        "documents stay; what was read of them is read again when it is needed. A conversation that is still "
        "in memory is saved again when it goes on."
    )
    return _ask(parent, "Clear the prefix cache", question, "Delete all", "Cancel")


def may_clear_what_is_of_no_use(parent: QWidget, nbytes: int) -> bool:
    """Ask whether to delete what is on disk when nothing is to be kept any more."""
    question = (
        "From now on nothing is kept on disk, and nothing is taken from it. What is there already takes "
        f"{format_nbytes(nbytes)}. Delete it?"
    )
    return _ask(parent, "Keep nothing on disk", question, "Delete it", "Leave it on disk")


def _ask(parent: QWidget, title: str, question: str, yes: str, no: str) -> bool:
    box = QMessageBox(QMessageBox.Icon.NoIcon, title, question, parent=parent)
    box.setTextFormat(Qt.TextFormat.PlainText)
    delete = box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    keep = box.addButton(no, QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(keep)
    box.setEscapeButton(keep)
    box.exec()
    box.deleteLater()
    return box.clickedButton() is delete
