from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QColor, QImage

from ui.inspector.memory.picture import stack_image

RED, BLUE, WHITE = QColor("#ff0000"), QColor("#0000ff"), QColor("#ffffff")


def stack(*bars: tuple[float, float], known: tuple[bool, ...] | None = None) -> QImage:
    """Red below blue, in a picture ten pixels high in which a pixel is worth ten bytes."""
    parts = np.array(bars, dtype=float).T
    return stack_image(parts, np.array(known or (True,) * len(bars)), 10, 100.0, [RED, BLUE, WHITE])


def colors(image: QImage, column: int) -> list[str]:
    """The colours of a column from the bottom up."""
    return [image.pixelColor(column, 9 - row).name() for row in range(10)]


def test_a_bar_is_as_high_as_its_bytes() -> None:
    image = stack((20, 30), (0, 100), (0, 0))
    assert colors(image, 0) == [RED.name()] * 2 + [BLUE.name()] * 3 + [WHITE.name()] * 5
    assert colors(image, 1) == [BLUE.name()] * 10
    assert colors(image, 2) == [WHITE.name()] * 10


def test_an_edge_within_a_pixel_is_mixed_by_what_lies_below_it() -> None:
    pixel = stack((45, 0)).pixelColor(0, 5)
    assert (pixel.red(), pixel.green(), pixel.blue()) == (
        255,
        pytest.approx(128, abs=1),
        pytest.approx(128, abs=1),
    )


def test_columns_of_which_nothing_is_known_stay_empty() -> None:
    image = stack((50, 0), (50, 0), known=(False, True))
    assert colors(image, 0) == [WHITE.name()] * 10
    assert RED.name() in colors(image, 1)


def test_what_is_higher_than_the_picture_fills_it() -> None:
    assert colors(stack((500, 500)), 0) == [RED.name()] * 10


@settings(max_examples=50)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=5))
def test_any_bars_are_drawn_as_one_bar_after_the_other_would_be(heights: list[int]) -> None:
    shades = [QColor(40 * number, 0, 0) for number in range(len(heights))]
    parts = np.array([heights], dtype=float).T * 10  # whole pixels
    image = stack_image(parts, np.array([True]), 300, 3_000.0, [*shades, WHITE])
    expected = [shade.name() for shade, height in zip(shades, heights, strict=True) for _ in range(height)][
        :300
    ]
    expected += [WHITE.name()] * (300 - len(expected))
    assert [image.pixelColor(0, 299 - row).name() for row in range(300)] == expected
