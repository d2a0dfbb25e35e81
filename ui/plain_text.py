"""Words that are not ours, such as file names and titles, shown as they are.

Qt takes a text with anything like a tag in it for HTML; a name could then draw pictures or pass for another.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as GuiQt
from PySide6.QtWidgets import QLabel


def plain_label(text: str = "", *, wraps: bool = False) -> QLabel:
    """Return a label that never reads its text as HTML."""
    label = QLabel(text, wordWrap=wraps)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def plain_tip(text: str) -> str:
    """Return a tool tip that shows `text` as it is."""
    return GuiQt.convertFromPlainText(text) if GuiQt.mightBeRichText(text) else text
