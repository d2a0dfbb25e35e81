"""The order in which the pieces of a page are read.

The order of the file is kept unless the page has columns and the file goes to and fro between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from app.documents.pdf.box import Box

_MIN_SIDE_LINES = 5
_MAX_CROSSING_SHARE = 0.35
_MIN_GUTTER_PT = 6.0
_MIN_FILLED_WIDTH = 0.55
_MIN_PROSE_CHARS = 18
_MAX_DEPTH = 3
_MAX_PIECES = 1000


def reading_order(boxes: Sequence[Box], num_chars: Sequence[int]) -> list[int]:
    """Return the indices of a page's pieces in the order to read them; `num_chars` are their lengths."""
    as_filed = list(range(len(boxes)))
    if len(boxes) > _MAX_PIECES:
        return as_filed  # drawn rather than written, and it would take long
    by_column = _by_column(as_filed, boxes, num_chars, _MAX_DEPTH)
    if _num_jumps(by_column, boxes) < 0.6 * _num_jumps(as_filed, boxes) - 1:
        return by_column
    return as_filed


def _num_jumps(order: Sequence[int], boxes: Sequence[Box]) -> int:
    """Return how often the eye leaves a column: the next piece is neither below nor on the same column."""
    return sum(1 for one, other in pairwise(order) if not _follows(boxes[one], boxes[other]))


def _follows(box: Box, following: Box) -> bool:
    """Return whether a piece is straight below another."""
    return box.is_over(following) and following.bottom < box.top


def _by_column(indices: list[int], boxes: Sequence[Box], num_chars: Sequence[int], depth: int) -> list[int]:
    """Return pieces column by column; those that cross the columns part what is above from what is below."""
    gutter = _gutter(indices, boxes, num_chars) if depth else None
    if gutter is None:
        return indices
    crossing = [index for index in indices if boxes[index].left < gutter < boxes[index].right]
    crossing.sort(key=lambda index: -boxes[index].top)
    ordered: list[int] = []
    left = [index for index in indices if boxes[index].right <= gutter]
    right = [index for index in indices if boxes[index].left >= gutter]
    for index in (*crossing, None):
        floor = boxes[index].bottom if index is not None else float("-inf")
        for side in (left, right):
            above = [each for each in side if (boxes[each].bottom + boxes[each].top) / 2 > floor]
            side[:] = [each for each in side if (boxes[each].bottom + boxes[each].top) / 2 <= floor]
            ordered += _by_column(above, boxes, num_chars, depth - 1)
        if index is not None:
            ordered.append(index)
    return ordered


def _gutter(indices: list[int], boxes: Sequence[Box], num_chars: Sequence[int]) -> float | None:
    """Return where a blank strip parts two columns of prose, None when nothing says so."""
    if len(indices) < 2 * _MIN_SIDE_LINES:
        return None
    best: tuple[int, float, float] | None = None
    for start in sorted({boxes[index].right for index in indices}):
        middle = start + _MIN_GUTTER_PT / 2
        num_crossing = sum(1 for index in indices if boxes[index].left < middle < boxes[index].right)
        if num_crossing > _MAX_CROSSING_SHARE * len(indices):
            continue
        left = [index for index in indices if boxes[index].right <= middle]
        right = [index for index in indices if boxes[index].left >= middle]
        if min(len(left), len(right)) < _MIN_SIDE_LINES:
            continue
        width = min(boxes[index].left for index in right) - start
        if (
            width >= _MIN_GUTTER_PT
            and _is_prose(left, boxes, num_chars)
            and _is_prose(right, boxes, num_chars)
        ):
            candidate = (-num_crossing, width, start + width / 2)
            best = candidate if best is None or candidate > best else best
    return None if best is None else best[2]


def _is_prose(indices: list[int], boxes: Sequence[Box], num_chars: Sequence[int]) -> bool:
    """Return whether the pieces of a column fill it as lines of running text do."""
    column = max(boxes[index].right for index in indices) - min(boxes[index].left for index in indices)
    widths = sorted(boxes[index].right - boxes[index].left for index in indices)
    lengths = sorted(num_chars[index] for index in indices)
    middle = len(indices) // 2
    return widths[middle] >= _MIN_FILLED_WIDTH * column and lengths[middle] >= _MIN_PROSE_CHARS
