from __future__ import annotations

from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from tests.app.store.prefixes.stored_texts import page_of, sequence_of
from tests.ui.conftest import Desk

WAIT_MS = 20_000


def test_the_menu_shows_what_is_kept_and_leads_to_the_conversation(qtbot: QtBot, desk: Desk) -> None:
    window = desk.open()
    papers = desk.store.create_conversation("Papers").id
    assert window.chat.session.conversation_id != papers
    assert window._stored.put_page(page_of("a document", papers))
    assert window._stored.put_sequence(sequence_of(papers, "a document"))
    assert window._stored.flush(20)
    next(each for each in window.findChildren(QAction) if each.text() == "&Prefix cache…").trigger()
    dialog = window.prefixes.dialog
    assert dialog is not None and dialog.isVisible()
    qtbot.waitUntil(lambda: [row.title for row in dialog.table.rows] == ["Papers"], timeout=WAIT_MS)
    dialog.table.setCurrentIndex(dialog.table.model().index(0, 0))
    dialog.open_button.click()
    assert window.chat.session.conversation_id == papers and not dialog.isVisible()


def test_what_was_deleted_of_a_conversation_is_kept_again_when_it_goes_on(desk: Desk) -> None:
    window = desk.open()
    papers = desk.store.create_conversation("Papers").id
    window._stored.delete(papers)
    assert window._stored.put_page(page_of("a document", papers)) and window._stored.flush(20)
    assert window._stored.figures().num_pages == 0
    window._engine.reply(papers, 1, window.chat.reply_settings())
    assert window._stored.put_page(page_of("a document", papers)) and window._stored.flush(20)
    assert window._stored.figures().num_pages == 1
