from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from ui.notifications import Level, Notice, NotificationBar
from ui.plain_text import plain_tip

NAME = "“<img src=file:///etc/hostname><b>bold</b> &amp; a < b.pdf”"


def test_a_name_that_looks_like_html_is_shown_as_it_is(qtbot: QtBot) -> None:
    bar = NotificationBar()
    qtbot.addWidget(bar)
    bar.show_notice(Notice(Level.WARNING, NAME, f"{NAME} could not be read."))
    for label in (bar._title, bar._message):
        assert NAME in label.text()
        assert label.textFormat() == Qt.TextFormat.PlainText


def test_a_tool_tip_shows_a_name_as_it_is(qtbot: QtBot) -> None:
    tip = QTextDocument()
    tip.setHtml(plain_tip(NAME))
    assert tip.toPlainText() == NAME
    assert plain_tip("notes.pdf") == "notes.pdf"
