from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from engine.tokens import TokenCounter
from tests.engine.folders import byte_tokenizer
from tests.ui.conftest import WAIT_MS
from ui.token_counts import TokenCounts


class SlowCounter(TokenCounter):
    """Counts wrongly, and only when it is let go, as the tokenizer of an earlier model may."""

    def __init__(self) -> None:
        super().__init__(byte_tokenizer())
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()

    def count(self, text: str, cancel: object = None) -> int:
        self.begun.set()
        self.go_on.wait()
        self.ended.set()
        return 1_000_000


@pytest.fixture
def counts(qtbot: QtBot) -> TokenCounts:
    return TokenCounts()


def wait_for(qtbot: QtBot, counts: TokenCounts, text: str) -> int:
    """Return the tokens of a text as soon as they are known."""
    qtbot.waitUntil(lambda: counts.count(text) is not None, timeout=WAIT_MS)
    tokens = counts.count(text)
    assert tokens is not None
    return tokens


def test_a_text_is_counted_once_and_its_count_remembered(qtbot: QtBot, counts: TokenCounts) -> None:
    counts.set_counter(TokenCounter(byte_tokenizer()))
    assert wait_for(qtbot, counts, "naïve \ud800") == len("naïve \ufffd".encode())
    assert wait_for(qtbot, counts, "words") == 5
    assert counts.count("") == 0
    counts.stop()


def test_counts_of_an_earlier_model_are_not_taken_for_this_ones(qtbot: QtBot, counts: TokenCounts) -> None:
    earlier = SlowCounter()
    counts.set_counter(earlier)
    counts.count("words")
    earlier.begun.wait()
    counts.set_counter(TokenCounter(byte_tokenizer()))
    earlier.go_on.set()
    assert wait_for(qtbot, counts, "words") == 5
    assert earlier.ended.is_set()
    counts.stop()


def test_a_conversation_of_many_messages_is_counted_to_the_end(qtbot: QtBot, counts: TokenCounts) -> None:
    counts.set_counter(TokenCounter(byte_tokenizer()))
    texts = [str(number) for number in range(10_000, 16_000)]
    qtbot.waitUntil(lambda: None not in [counts.count(text) for text in texts], timeout=WAIT_MS)
    QCoreApplication.processEvents()
    assert {counts.count(text) for text in texts} == {5}
    counts.stop()
