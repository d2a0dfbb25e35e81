"""What is painted, by its pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPixmap
from PySide6.QtWidgets import QApplication

from tests.ui.test_theme import contrast
from ui.inspector.pages.cells import CellPainter, cell_color
from ui.inspector.pages.looks import LEVELS, CellLook, PageState
from ui.theme import Palette

SIZES = (9, 13, 22)
MIDDLE = LEVELS // 2


def look(
    state: PageState = PageState.COLD, level: int = MIDDLE, *, shared: bool = False, pinned: bool = False
) -> CellLook:
    return CellLook(state, level, shared, pinned)


def pixels(picture: QPixmap) -> np.ndarray:
    """Return red, green, blue and alpha of a picture: `[height, width, 4]`."""
    image = picture.toImage().convertToFormat(QImage.Format.Format_RGBA8888)
    return np.array(image.constBits()).reshape(image.height(), image.width(), 4).astype(int)


def grey(picture: QPixmap, palette: Palette) -> np.ndarray:
    """Return how light a picture is on the pane, as one sees it without colours: `[height, width]`."""
    rgba = pixels(picture)
    pane = np.array(palette.color("panel").getRgb()[:3])
    alpha = rgba[..., 3:] / 255
    return (rgba[..., :3] * alpha + pane * (1 - alpha)) @ [0.2126, 0.7152, 0.0722]


@pytest.fixture(params=["light", "dark"])
def palette(request: pytest.FixtureRequest, qapp: QApplication) -> Palette:
    return Palette.load(request.param)


@pytest.fixture(params=SIZES)
def cells(request: pytest.FixtureRequest, palette: Palette) -> CellPainter:
    return CellPainter(request.param, 1.0, palette)


def test_tiers_differ_without_colours(cells: CellPainter, palette: Palette) -> None:
    # Lightness follows heat, so compare the shape alone: where a cell is lighter or darker than its edge.
    shapes = []
    for state in PageState:
        light = grey(cells.picture(look(state)), palette)
        edge = light[light.shape[0] // 2, 0]
        shapes.append(np.sign(np.where(abs(light - edge) > 25, light - edge, 0))[2:-2, 2:-2])

    for index, one in enumerate(shapes):
        for other in shapes[:index]:
            assert (abs(one) != abs(other)).sum() >= 3


def test_a_shared_page_is_hatched(cells: CellPainter, palette: Palette) -> None:
    plain, hatched = (grey(cells.picture(look(shared=shared)), palette) for shared in (False, True))
    inner = slice(2, -2)

    # Along a row through the middle, a plain cell is even and a hatched one goes up and down.
    assert np.ptp(plain[len(plain) // 2, inner]) < 2
    assert np.ptp(hatched[len(hatched) // 2, inner]) > 25


def test_a_pinned_page_has_a_frame_with_a_gap(cells: CellPainter, palette: Palette) -> None:
    light = grey(cells.picture(look(pinned=True)), palette)
    text, pane = (
        float(np.dot(palette.color(role).getRgb()[:3], [0.2126, 0.7152, 0.0722]))
        for role in ("text", "panel")
    )
    middle = light[len(light) // 2]

    from_left = middle[: len(middle) // 2]
    assert abs(middle[0] - text) < 30
    assert min(abs(from_left[1:] - pane)) < 30
    assert abs(middle[len(middle) // 2] - pane) > 20


def test_the_open_page_is_filled_from_below_by_its_share(palette: Palette) -> None:
    cells = CellPainter(20, 1.0, palette)
    fill = palette.color("chart_open").getRgb()[:3]

    for share in (0.0, 0.25, 0.5, 1.0):
        column = pixels(cells.open_picture(share))[:, 10]
        filled = [tuple(pixel[:3]) == fill for pixel in column[1:-1]]
        assert sum(filled) == pytest.approx(min(18, 20 * share), abs=1.01)
        assert filled == sorted(filled)


def test_the_more_a_page_is_read_the_more_of_its_colour_it_has(palette: Palette) -> None:
    for state in (PageState.HOT, PageState.WARM, PageState.COLD):
        against = [
            contrast(cell_color(palette, state, level).name(), palette.panel) for level in range(LEVELS)
        ]
        assert against == sorted(against)
        assert cell_color(palette, state, LEVELS - 1).name() == getattr(palette, state.role)


def test_a_sharp_screen_gets_sharp_pictures(palette: Palette) -> None:
    picture = CellPainter(12, 2.0, palette).picture(look())

    assert (picture.width(), picture.deviceIndependentSize().width()) == (24, 12)


def test_a_look_is_painted_once(palette: Palette) -> None:
    cells = CellPainter(12, 1.0, palette)

    assert cells.picture(look()).cacheKey() == cells.picture(look()).cacheKey()
