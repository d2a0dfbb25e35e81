from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect

from ui.inspector.pages.grid import GAP, GROUP_GAP, PageGrid


def placed(grid: PageGrid) -> list[QRect]:
    """Place all cells one after another, as one would by hand."""
    rects, top = [], 0
    for count in grid.counts:
        top += grid.heading_height
        x = 0
        for number in range(count):
            if number and x + grid.cell > grid.columns * grid.pitch:
                x, top = 0, top + grid.cell + GAP
            rects.append(QRect(x, top, grid.cell, grid.cell))
            x += grid.cell + GAP
        top += grid.cell + GROUP_GAP
    return rects


COUNTS = st.lists(st.integers(1, 90), min_size=1, max_size=6).map(tuple)
GRIDS = st.builds(PageGrid, COUNTS, st.integers(60, 420), st.sampled_from([0, 20]))


@given(GRIDS)
def test_cells_lie_in_rows_below_the_heading_of_their_group(grid: PageGrid) -> None:
    expected = placed(grid)

    assert [grid.rect(index) for index in range(grid.num_cells)] == expected
    assert grid.height == expected[-1].bottom() + 1
    assert max(rect.right() for rect in expected) < grid.width
    assert [grid.heading(group).bottom() + 1 for group in range(len(grid.counts))] == [
        expected[sum(grid.counts[:group])].top() for group in range(len(grid.counts))
    ]


@given(GRIDS, st.data())
def test_a_point_finds_the_cell_that_is_painted_there(grid: PageGrid, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(-5, grid.width + 5)), data.draw(st.integers(-5, grid.height + 30))

    found = grid.index_at(x, y)

    within = [
        index for index, rect in enumerate(placed(grid)) if rect.adjusted(0, 0, GAP, GAP).contains(x, y)
    ]
    assert found == (within[0] if within else None)


@given(GRIDS, st.data())
def test_what_is_to_be_painted_in_a_strip_includes_all_cells_that_it_shows(
    grid: PageGrid, data: st.DataObject
) -> None:
    top = data.draw(st.integers(0, grid.height))
    strip = QRect(0, top, grid.width, data.draw(st.integers(1, 300)))

    chosen = list(grid.between(strip.top(), strip.bottom()))

    rects = placed(grid)
    shown = {index for index, rect in enumerate(rects) if rect.intersects(strip)}
    assert shown <= {index for index, _, _ in chosen}
    assert len(chosen) <= len(shown) + 4 * grid.columns
    assert all((x, y) == (rects[index].x(), rects[index].y()) for index, x, y in chosen)
    headings = {group for group in range(len(grid.counts)) if grid.heading(group).intersects(strip)}
    assert headings <= set(grid.groups_between(strip.top(), strip.bottom()))


@given(GRIDS, st.data())
def test_a_row_step_goes_to_the_nearest_cell_of_the_next_row(grid: PageGrid, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, grid.num_cells - 1))
    rects = placed(grid)

    below, above = grid.row_step(index, 1), grid.row_step(index, -1)

    lower = sorted({rect.top() for rect in rects if rect.top() > rects[index].top()})
    upper = sorted({rect.top() for rect in rects if rect.top() < rects[index].top()})
    for target, rows in ((below, lower[:1]), (above, upper[-1:])):
        row = [at for at, rect in enumerate(rects) if [rect.top()] == rows]
        nearest = min(row, key=lambda at: abs(rects[at].x() - rects[index].x()), default=index)
        assert target == nearest


@pytest.mark.parametrize("width", [238, 388])
def test_cells_shrink_with_their_number_and_use_the_width(width: int) -> None:
    sides = [PageGrid((count,), width, 0).cell for count in (8, 100, 1000, 4096)]

    assert sides == sorted(sides, reverse=True) and len(set(sides)) == 4
    assert 9 <= sides[-1] <= 12
    for count in (8, 100, 1000, 4096):
        grid = PageGrid((count,), width, 0)
        assert width - grid.columns * grid.pitch < grid.columns


def test_an_empty_grid_has_no_height_and_no_cells() -> None:
    grid = PageGrid((), 300, 20)

    assert (grid.height, grid.num_cells, grid.index_at(5, 5), list(grid.between(0, 99))) == (0, 0, None, [])
    assert list(grid.groups_between(0, 99)) == []
