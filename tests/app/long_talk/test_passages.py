from __future__ import annotations

import pytest

from app.long_talk.passages import Passages
from engine.errors import OctavoError

TEXT = "One two three. Four five.\n\nSix seven eight nine. Ten."


def test_passages_are_whole_sentences_in_order_of_at_least_so_many_tokens() -> None:
    passages = Passages("numbers", TEXT, lambda text: len(text.split()))
    assert passages.take(3) == "One two three."
    assert passages.take(3) == "Four five. Six seven eight nine."
    assert passages.take(1) == "Ten."


def test_a_text_that_ends_too_early_is_named() -> None:
    passages = Passages("numbers", TEXT, lambda text: len(text.split()))
    with pytest.raises(OctavoError, match=r"^The text numbers is too short for this\. Take a longer one\.$"):
        passages.take(11)
