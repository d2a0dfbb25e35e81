from __future__ import annotations

import re

import pytest

from engine.bench.prose import TEXT, require_tokens
from engine.errors import OctavoError
from engine.model import Model


def test_the_text_is_long_enough_for_a_long_context(starter: Model) -> None:
    assert len(require_tokens(starter.tokenizer, TEXT, 6000)) == 6000


def test_nothing_in_the_text_comes_twice() -> None:
    paragraphs = [" ".join(paragraph.split()) for paragraph in TEXT.split("\n\n")]
    assert len(set(paragraphs)) == len(paragraphs)
    sentences = re.findall(r"[A-Z][^.?!|#()]{40,}[.?!]", TEXT)
    assert len(set(sentences)) == len(sentences) > 200


def test_a_text_that_is_too_short_is_refused_with_its_length(starter: Model) -> None:
    with pytest.raises(
        OctavoError, match=r"^The text has 2 tokens and 10 are to be read; take a longer text"
    ):
        require_tokens(starter.tokenizer, "Hello world", 10)
