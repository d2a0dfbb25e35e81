"""The stretch of a text that is laid out, against characters counted one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from ui.documents.stretch import STRETCH_CHARS, Stretch

LETTERS = "aé語🙂ب\n\r\0\u2029\ufdd0 "


@given(st.text(LETTERS, max_size=60), st.integers(0, 60))
def test_a_position_in_qts_document_is_the_same_character_of_the_text(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    stretch = Stretch.around(text, offset)
    document = QTextDocument()
    document.setPlainText(stretch.shown)
    units = sum(2 if ord(letter) > 0xFFFF else 1 for letter in text[:offset])
    assert stretch.position(offset) == units
    assert stretch.offset(units) == offset
    assert document.characterCount() - 1 == sum(2 if ord(letter) > 0xFFFF else 1 for letter in text)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_a_stretch_of_a_long_text_holds_the_place_in_whole_lines(share: float) -> None:
    lines = [f"line {number} " + "of some words " * (number % 7) for number in range(20_000)]
    text = "\n".join(lines)
    offset = round(share * len(text))
    stretch = Stretch.around(text, offset)
    assert stretch.holds(offset)
    assert len(stretch.shown) <= STRETCH_CHARS + 4_000
    assert stretch.shown == text[stretch.start : stretch.stop]
    assert stretch.start == 0 or text[stretch.start - 1] == "\n"
    assert stretch.is_last or text[stretch.stop - 1] == "\n"
    assert stretch.is_last == (stretch.stop == len(text))


def test_a_text_without_lines_is_cut_all_the_same() -> None:
    text = "x" * 500_000
    stretch = Stretch.around(text, 250_000)
    assert stretch.holds(250_000)
    assert len(stretch.shown) == STRETCH_CHARS
