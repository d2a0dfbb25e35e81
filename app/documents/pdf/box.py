"""Places on a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """A place on a page as it is shown, in points; the origin is at the bottom left."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        """How high it is."""
        return self.top - self.bottom

    def joined(self, other: Box) -> Box:
        """Return the smallest box around both."""
        return Box(
            min(self.left, other.left),
            min(self.bottom, other.bottom),
            max(self.right, other.right),
            max(self.top, other.top),
        )

    def is_beside(self, other: Box) -> bool:
        """Return whether the two stand on one line."""
        overlap = min(self.top, other.top) - max(self.bottom, other.bottom)
        return overlap > 0.5 * min(self.height, other.height)

    def is_over(self, other: Box) -> bool:
        """Return whether some of this is straight above or below some of the other."""
        return min(self.right, other.right) > max(self.left, other.left)


def turned(box: Box, rotation: int) -> Box:
    """Return a box of a page that is turned clockwise by `rotation` degrees, 0, 90, 180 or 270."""
    if rotation == 90:
        return Box(box.bottom, -box.right, box.top, -box.left)
    if rotation == 180:
        return Box(-box.right, -box.top, -box.left, -box.bottom)
    if rotation == 270:
        return Box(-box.top, box.left, -box.bottom, box.right)
    return box
