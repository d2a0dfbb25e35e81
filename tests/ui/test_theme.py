from __future__ import annotations

import re

import pytest
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication

from ui.theme import RESOURCES, Palette, Theme, style_sheet

ICONS = sorted(path.stem for path in (RESOURCES / "icons").glob("*.svg"))


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_reads_on_every_surface(name: str) -> None:
    palette = Palette.load(name)
    for text in ("text", "text_muted", "text_faint"):
        for surface in ("window", "panel", "surface"):
            assert contrast(getattr(palette, text), getattr(palette, surface)) >= 4.5, (text, surface)
    for text, surface in (
        ("on_accent", "accent"),
        ("accent", "window"),
        ("link", "window"),
        ("link", "bubble"),
        ("text", "selected"),
        ("text", "bubble"),
        ("text", "code"),
        ("info", "info_soft"),
        ("warning", "warning_soft"),
        ("warning", "panel"),
        ("danger", "danger_soft"),
        ("danger", "surface"),
        ("danger", "window"),
        ("text", "danger_soft"),
        ("text_muted", "bubble"),
        ("success", "window"),
    ):
        assert contrast(getattr(palette, text), getattr(palette, surface)) >= 4.5, (text, surface)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_style_sheet_names_only_colours_of_the_palette(name: str) -> None:
    sheet = style_sheet(Palette.load(name))
    assert "$" not in sheet
    known = {value.lower() for value in vars(Palette.load(name)).values()}
    used = set(re.findall(r"(?<=[ :])#[0-9a-fA-F]{6}\b", sheet))
    assert used and {color.lower() for color in used} <= known


@pytest.mark.parametrize("icon", ICONS)
def test_icon_paints_something_within_its_frame(qapp: QApplication, icon: str) -> None:
    image = Theme.current().pixmap(icon, 32, "text").toImage()
    alphas = [image.pixelColor(x, y).alpha() for x in range(image.width()) for y in range(image.height())]
    assert any(alphas)
    if icon != "octavo":
        corners = [(0, 0), (image.width() - 1, 0), (0, image.height() - 1)]
        assert all(image.pixelColor(x, y).alpha() == 0 for x, y in corners)


def test_icons_take_the_colour_of_the_palette(qapp: QApplication) -> None:
    theme = Theme.current()
    theme.set_choice("dark")
    image = theme.pixmap("stop", 32, "danger").toImage()
    assert image.pixelColor(image.width() // 2, image.height() // 2) == theme.palette.color("danger")


def test_choosing_a_look_restyles_the_application_and_tells(qapp: QApplication, qtbot) -> None:  # noqa: ANN001
    theme = Theme.current()
    theme.set_choice("light")
    with qtbot.waitSignal(theme.changed):
        theme.set_choice("dark")
    assert theme.is_dark
    assert QApplication.palette().color(QPalette.ColorRole.Window) == theme.palette.color("window")
    assert theme.palette.window in qapp.styleSheet()


def test_an_unknown_look_is_refused(qapp: QApplication) -> None:
    with pytest.raises(ValueError, match="sepia"):
        Theme.current().set_choice("sepia")
