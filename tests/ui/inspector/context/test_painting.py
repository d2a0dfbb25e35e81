"""What is painted of a context, by its pixels."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ledger.entries import EntryKind, LedgerEntry, LedgerReport
from tests.ui.inspector.context.samples import left, turn
from ui.inspector.context.share_bar import ShareBar
from ui.inspector.context.view import LedgerView
from ui.theme import Theme


def num_pixels(image: QImage, color: QColor) -> int:
    """Return how many pixels have a colour."""
    places = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return sum(image.pixelColor(x, y).rgb() == color.rgb() for x, y in places)


def row_image(qtbot: QtBot, entry: LedgerEntry) -> QImage:
    """Return the picture of a row that is not selected."""
    view = LedgerView()
    qtbot.addWidget(view)
    view.resize(240, 60)
    view.set_entries([entry])
    view.show()
    qtbot.waitExposed(view)
    return view.viewport().grab().toImage()


def test_each_kind_has_its_share_of_the_bar(qtbot: QtBot) -> None:
    bar = ShareBar()
    qtbot.addWidget(bar)
    bar.resize(400, 80)
    shares = ((EntryKind.DOCUMENT, 100), (EntryKind.TURN, 200))
    bar.show_report(LedgerReport((turn(1),), tokens=300, limit_tokens=400, shares=shares))
    bar.show()
    qtbot.waitExposed(bar)
    (painted,) = [each for each in bar.findChildren(QWidget) if each.accessibleName().startswith("Share")]
    image, palette = painted.grab().toImage(), Theme.current().palette
    middle = image.copy(0, image.height() // 2, image.width(), 1)

    widths = [num_pixels(middle, palette.color(role)) for role in ("span_document", "span_turn", "border")]
    assert widths == pytest.approx([100, 200, 100], abs=4)


def test_the_bar_of_heat_grows_with_it_and_is_missing_without(qtbot: QtBot) -> None:
    color = Theme.current().palette.color("tier_hot")
    cold, warm, hot = (
        num_pixels(row_image(qtbot, turn(1, heat_rate=rate)), color) for rate in (0.2, 1.0, 5.0)
    )
    assert 0 < cold < warm < hot
    assert num_pixels(row_image(qtbot, turn(1, heat_rate=None)), color) == 0


def test_a_pinned_row_looks_other_than_one_that_is_not(qtbot: QtBot) -> None:
    assert row_image(qtbot, turn(1)) == row_image(qtbot, turn(1))
    assert row_image(qtbot, turn(1)) != row_image(qtbot, turn(1, is_pinned=True))


def test_a_row_that_is_not_read_has_no_colour_of_its_kind(qtbot: QtBot) -> None:
    color = Theme.current().palette.color("span_turn")
    assert num_pixels(row_image(qtbot, turn(1)), color) > 5
    assert num_pixels(row_image(qtbot, left(turn(1))), color) == 0
