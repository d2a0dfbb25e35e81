"""Finding words in a text, against a search written without regular expressions."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from ui.documents.search import MOST_HITS, TextSearch


def found(qtbot: QtBot, text: str, words: str) -> list[tuple[int, int]]:
    search = TextSearch()
    search.start(text, words)
    qtbot.waitUntil(lambda: not search.is_running)
    return search.hits


def test_all_places_are_found_whatever_their_capitals(qtbot: QtBot) -> None:
    text = "Needle in hay. " * 40_000 + "a NEEDLE at the end"
    lowered, places = text.lower(), []
    at = lowered.find("needle")
    while at >= 0 and len(places) < MOST_HITS:
        places.append((at, at + 6))
        at = lowered.find("needle", at + 6)
    assert found(qtbot, text, "needle") == places


def test_words_are_found_across_the_end_of_a_line_and_of_a_piece(qtbot: QtBot) -> None:
    head = "x" * 399_995
    assert found(qtbot, f"{head} two\n  words", "two words") == [(399_996, 399_996 + 11)]


def test_signs_stand_for_themselves(qtbot: QtBot) -> None:
    assert found(qtbot, "a.c abc a.c", "a.c") == [(0, 3), (8, 11)]


def test_nothing_is_looked_for_without_words(qtbot: QtBot) -> None:
    assert found(qtbot, "some text", "  ") == []


def test_the_window_goes_on_while_a_long_text_is_looked_through(qtbot: QtBot) -> None:
    search = TextSearch()
    search.start("x" * 30_000_000, "y")
    assert search.is_running
    QApplication.processEvents()
    assert search.is_running or not search.hits
    qtbot.waitUntil(lambda: not search.is_running)
