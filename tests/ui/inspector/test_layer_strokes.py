from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QPointF

from engine.kv.precision import KV_BITS
from ui.inspector.layer_strokes import BarGeometry, Place, crossed

widths = st.integers(238, 390)


@given(st.integers(1, 126), widths)
def test_every_layer_and_every_number_of_bits_can_be_pointed_at(count: int, width: int) -> None:
    geometry = BarGeometry(count, width)
    for layer in range(count):
        for stop in range(len(KV_BITS)):
            middle = QPointF(geometry.block(Place(layer, stop)).center())
            assert geometry.place_at(middle) == Place(layer, stop)


@given(st.integers(1, 126), widths)
def test_bars_stand_side_by_side_to_the_end_of_the_row(count: int, width: int) -> None:
    edges = [BarGeometry(count, width).edges(layer) for layer in range(count)]
    assert [right for _, right in edges[:-1]] == [left for left, _ in edges[1:]]
    assert edges[-1][1] == width


@pytest.mark.parametrize("point", [(-50, -50), (1_000, -50), (-50, 1_000), (1_000, 1_000)])
def test_a_point_outside_means_the_nearest_bar(point: tuple[int, int]) -> None:
    place = BarGeometry(30, 300).place_at(QPointF(*point))
    assert place == Place(0 if point[0] < 0 else 29, 6 if point[1] < 0 else 0)


@pytest.mark.parametrize(
    ("start", "end", "bits"),
    [
        ((3, 0), (3, 6), {3: 16}),
        ((2, 2), (5, 2), {2: 4, 3: 4, 4: 4, 5: 4}),
        ((5, 6), (2, 3), {2: 5, 3: 6, 4: 8, 5: 16}),
        ((0, 0), (6, 3), {0: 2, 1: 2, 2: 3, 3: 4, 4: 4, 5: 4, 6: 5}),
    ],
)
def test_a_stroke_sets_all_layers_that_it_crosses(
    start: tuple[int, int], end: tuple[int, int], bits: dict[int, int]
) -> None:
    assert crossed(Place(*start), Place(*end)) == bits
