from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.ledger.sentences import sentences
from app.sources.sentence_spans import sentence_spans


@given(st.text(alphabet="aB1 .?!\n\t|#-`:。漢」… ", max_size=300))
def test_the_words_at_each_place_are_those_of_the_sentence(text: str) -> None:
    found = [" ".join(text[start:stop].split()) for start, stop in sentence_spans(text)]
    assert found == sentences(text)


def test_a_sentence_lies_where_it_stands_in_the_text() -> None:
    text = "  One thing.\n\nTwo\nthings! 三です。四です。"
    assert sentence_spans(text) == [(2, 12), (14, 25), (26, 30), (30, 34)]
