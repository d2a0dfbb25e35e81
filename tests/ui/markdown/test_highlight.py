from __future__ import annotations

import pytest

from ui.markdown.highlight import DARK, LIGHT, ColorSpan, Highlighter
from ui.theme import Palette


def spans(code: str, language: str, *, is_dark: bool = False) -> list[ColorSpan]:
    found, is_done = Highlighter(code, language, is_dark=is_dark).advance(60.0)
    assert is_done
    return found


def luminance(color: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("colors", "theme"), [(LIGHT, "light"), (DARK, "dark")])
def test_every_colour_can_be_read_on_the_ground_of_code(colors: dict[object, str], theme: str) -> None:
    ground = luminance(Palette.load(theme).code)
    for color in colors.values():
        bright, dim = sorted((luminance(color), ground), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, color


def test_spans_lie_on_the_words_that_they_colour() -> None:
    code = 'def f():\n    return "s"  # note\n'
    lines = code.split("\n")
    words = {lines[span.line][span.start : span.start + span.length] for span in spans(code, "python")}
    assert {"def", "f", "return", "# note"} <= words


def test_columns_count_utf16_units_as_qt_does() -> None:
    number = spans("'🎉' 42", "python")[-1]
    assert (number.start, number.length) == (5, 2)


def test_strings_over_several_lines_are_coloured_on_each() -> None:
    assert {span.line for span in spans('"""a\nb\nc"""', "python")} == {0, 1, 2}


@pytest.mark.parametrize("language", ["", "no-such-language"])
def test_code_in_no_known_language_stays_plain(language: str) -> None:
    assert spans("x = 1", language) == []


def test_light_and_dark_differ() -> None:
    assert spans("def f(): pass", "python") != spans("def f(): pass", "python", is_dark=True)


def test_work_in_slices_finds_the_same_as_at_once() -> None:
    code = "def f(x):\n    return x + 1  # one\n" * 50
    highlighter = Highlighter(code, "python", is_dark=False)
    found: list[ColorSpan] = []
    slices, is_done = 0, False
    while not is_done:
        some, is_done = highlighter.advance(0.0)
        found += some
        slices += 1
    assert slices > 1
    assert found == spans(code, "python")
