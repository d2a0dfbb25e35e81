"""Where the bars of layers stand, and which of them a stroke of the mouse crosses."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRect

from ui.inspector.bits_slider import STOPS

GUTTER = 34
"""Pixels to the left of the bars, for a title and the scale."""
STEP = 8
"""Pixels between two stops."""
FLOOR = len(STOPS) * STEP + 1
"""Pixels from the top of a row to the bottom of its bars."""
_LEAST_FOR_GAP = 4


@dataclass(frozen=True)
class Place:
    """A point of a row: a layer, and a stop as its place in `STOPS`."""

    layer: int
    stop: int


@dataclass(frozen=True)
class BarGeometry:
    """A row of `count` bars in a widget of `width` pixels; every layer has at least a pixel where it can."""

    count: int
    width: int

    def edges(self, layer: int) -> tuple[int, int]:
        """Return where a layer's bar begins and where the next one does."""
        room = self.width - GUTTER
        return GUTTER + -(-layer * room // self.count), GUTTER + -(-(layer + 1) * room // self.count)

    def column(self, layer: int) -> QRect:
        """Return all of a layer's place, without the gap to the next one."""
        left, right = self.edges(layer)
        has_gap = self.width - GUTTER >= _LEAST_FOR_GAP * self.count
        return QRect(left, 1, right - left - has_gap, FLOOR - 1)

    def block(self, place: Place) -> QRect:
        """Return the block of a bar that means a stop."""
        column = self.column(place.layer)
        return QRect(column.left(), FLOOR - (place.stop + 1) * STEP + 1, column.width(), STEP - 1)

    def place_at(self, point: QPointF) -> Place:
        """Return the layer and stop at a point, the nearest ones where it is outside."""
        layer = int((point.x() - GUTTER) * self.count / max(1, self.width - GUTTER))
        stop = int((FLOOR - point.y()) // STEP)
        return Place(min(max(0, layer), self.count - 1), min(max(0, stop), len(STOPS) - 1))


def crossed(start: Place, end: Place) -> dict[int, int]:
    """Return the layers on the straight line from one place to another, with their bits."""
    if start.layer == end.layer:
        return {end.layer: STOPS[end.stop]}
    left, right = sorted((start, end), key=lambda place: place.layer)
    span, rise = right.layer - left.layer, right.stop - left.stop
    return {
        layer: STOPS[left.stop + round(rise * (layer - left.layer) / span)]
        for layer in range(left.layer, right.layer + 1)
    }
