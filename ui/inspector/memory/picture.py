"""The stacked area as an image, made of whole arrays: a polygon of as many points costs ten times as much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PySide6.QtGui import QColor, QImage

from ui.inspector.memory.series import Floats


def stack_image(
    parts: Floats, known: npt.NDArray[np.bool_], height: int, top: float, colors: Sequence[QColor]
) -> QImage:
    """Return the `parts`, [parts, columns], one above the other, in a picture of one pixel a column.

    Only columns that are `known`, [columns], are filled. `top` is at the upper edge. `colors` are those of
    the parts, from the bottom up, then that of what is above.
    """
    num_parts, width = parts.shape
    heights = np.cumsum(parts, axis=0) * (known * (height / top))
    edges = np.clip(height - heights, 0, height)
    rows = np.ceil(edges).astype(np.int64)
    flat = rows * width + np.arange(width)
    below = np.bincount(flat.ravel(), minlength=(height + 1) * width).reshape(height + 1, width)
    part = num_parts - np.cumsum(below[:height], axis=0)
    palette = np.array([color.rgb() for color in colors], dtype=np.uint32)
    pixels = palette[part]
    _smooth(pixels, edges, rows)
    data = np.ascontiguousarray(pixels)
    return QImage(data.data, width, height, width * 4, QImage.Format.Format_RGB32).copy()


def _smooth(
    pixels: npt.NDArray[np.uint32], edges: npt.NDArray[np.float64], rows: npt.NDArray[np.int64]
) -> None:
    """Mix the pixels that an edge goes through, by how much of them lies below it."""
    height = len(pixels)
    shares = rows - edges
    places, columns = np.nonzero((shares > 0) & (rows < height))
    share = shares[places, columns]
    lower = rows[places, columns]
    above, under = pixels[lower - 1, columns], pixels[lower, columns]
    mixed = np.zeros(len(share), dtype=np.uint32)
    for shift in (0, 8, 16):
        one, other = (above >> shift) & 255, (under >> shift) & 255
        mixed |= np.rint(one * (1 - share) + other * share).astype(np.uint32) << np.uint32(shift)
    pixels[lower - 1, columns] = mixed | np.uint32(0xFF000000)
