"""Lines and tables of a page, in the order in which they are read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.documents.pdf.box import Box
from app.documents.pdf.order import reading_order
from app.documents.pdf.segments import Segment

_BLANK_EMS = 0.12
_JOINED_EMS = 0.5
_MIN_ROWS = 3
_MAX_ROWS = 300
_MAX_ROW_DISTANCE_EMS = 3.0
_MAX_CELL_CHARS = 40
_ROOM_EMS = 0.3
_CODE = re.compile(r"[;{}]$|^//|^/\*|:=")
_LIST_MARK = re.compile(
    r"^(?:\(?\d{1,3}[.):]?|[(\[][\w+]{1,8}[)\]]|[a-zA-Z][.)]|[ivxIVX]{1,5}[.)]|[•◦▪‣●○■–*-])$"
)

_Span = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line of text.

    Attributes:
        text: its words.
        box: around it.
        size: of its type, in points.
        is_bold: whether all of it is bold, as far as its ends say.
        is_fixed: whether it is set as code.
    """

    text: str
    box: Box
    size: float
    is_bold: bool
    is_fixed: bool


@dataclass(frozen=True)
class Table:
    """Rows of cells.

    Attributes:
        rows: the cells' texts, one for each column.
        box: around them.
    """

    rows: tuple[tuple[str, ...], ...]
    box: Box


def body_size(pages: Iterable[Iterable[Line | Table]]) -> float:
    """Return the size of the type that most of a document is set in, to half a point; 0 without text."""
    sizes: Counter[int] = Counter()
    for page in pages:
        for line in page:
            if isinstance(line, Line):
                sizes[round(2 * line.size)] += len(line.text)
    return sizes.most_common(1)[0][0] / 2 if sizes else 0.0


def page_lines(segments: Sequence[Segment]) -> list[Line | Table]:
    """Return the lines and tables of a page."""
    items = _with_tables(_rows(segments))
    order = reading_order(
        [item.box for item in items],
        [len(item.text) if isinstance(item, Segment) else 0 for item in items],
    )
    lines: list[Line | Table] = []
    pending: list[Segment] = []
    for item in (items[index] for index in order):
        if pending and not (isinstance(item, Segment) and _is_next_in_row(pending[-1], item)):
            lines.append(_line(pending))
            pending = []
        if isinstance(item, Segment):
            pending.append(item)
        else:
            lines.append(item)
    return [*lines, _line(pending)] if pending else lines


def _rows(segments: Sequence[Segment]) -> list[list[Segment]]:
    """Return segments that stand beside each other, from left to right, as rows."""
    rows: list[list[Segment]] = []
    for segment in segments:
        if not rows or not _is_next_in_row(rows[-1][-1], segment):
            rows.append([segment])
        elif segment.box.left - rows[-1][-1].box.right < _JOINED_EMS * segment.size:
            rows[-1][-1] = _joined(rows[-1][-1], segment)
        else:
            rows[-1].append(segment)
    return rows


def _joined(segment: Segment, following: Segment) -> Segment:
    """Return two segments with no gap that could part columns between them as one."""
    line = _line([segment, following])
    return Segment(line.text, line.box, line.size, line.is_bold, line.is_fixed)


def _is_next_in_row(segment: Segment, following: Segment) -> bool:
    """Return whether a segment goes on with the line of another."""
    room = 0.5 * following.size
    return segment.box.is_beside(following.box) and following.box.left > segment.box.right - room


def _line(segments: Sequence[Segment]) -> Line:
    """Return the segments of a row as one line."""
    text = segments[0].text
    box = segments[0].box
    for before, segment in pairwise(segments):
        is_apart = segment.box.left - before.box.right > _BLANK_EMS * segment.size
        text += f" {segment.text}" if is_apart else segment.text
        box = box.joined(segment.box)
    longest = max(segments, key=lambda segment: len(segment.text))
    return Line(
        text,
        box,
        longest.size,
        all(segment.is_bold for segment in segments),
        all(segment.is_fixed for segment in segments),
    )


def _with_tables(rows: list[list[Segment]]) -> list[Segment | Table]:
    """Return the segments, those of rows that make a clear table as one."""
    items: list[Segment | Table] = []
    start = 0
    while start < len(rows):
        end = _table_end(rows, start)
        if end > start:
            items.append(_table(rows[start:end]))
            start = end
        else:
            items += rows[start]
            start += 1
    return items


def _table_end(rows: list[list[Segment]], start: int) -> int:
    """Return the row after the table that begins at `start`, which is `start` when there is none."""
    columns = _merged([], rows[start])
    last = min(len(rows), start + _MAX_ROWS)
    end = start + 1
    if len(columns) < 2:
        return start
    while end < last and len(rows[end]) >= 2 and _is_near(rows[end - 1], rows[end]):
        merged = _merged(columns, rows[end])
        if not _are_parted(columns, merged) or not _are_parted(_spans(rows[end]), merged):
            break
        columns = merged
        end += 1
    return end if end - start >= _MIN_ROWS and _is_clear(rows[start:end], columns) else start


def _spans(row: list[Segment]) -> list[_Span]:
    """Return how far each of a row's cells goes."""
    return [(segment.box.left, segment.box.right) for segment in row]


def _merged(columns: list[_Span], row: list[Segment]) -> list[_Span]:
    """Return the columns that are there when a row's cells are put to those that they overlap."""
    spans = sorted([*columns, *_spans(row)])
    merged = [spans[0]]
    for left, right in spans[1:]:
        if left < merged[-1][1] + _ROOM_EMS * row[0].size:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def _are_parted(spans: Sequence[_Span], columns: Sequence[_Span]) -> bool:
    """Return whether each span lies in a column of its own."""
    return len({_column(span, columns) for span in spans}) == len(spans)


def _column(span: _Span, columns: Sequence[_Span]) -> int:
    """Return the index of the column that a span lies in."""
    return bisect_right(columns, ((span[0] + span[1]) / 2, float("inf"))) - 1


def _cells(row: list[Segment], columns: Sequence[_Span]) -> dict[int, str]:
    """Return a row's texts by their column."""
    spans = zip(_spans(row), row, strict=True)
    return {_column(span, columns): segment.text for span, segment in spans}


def _is_near(row: list[Segment], following: list[Segment]) -> bool:
    """Return whether a row stands just below another."""
    distance = row[0].box.bottom - following[0].box.bottom
    return 0 < distance < _MAX_ROW_DISTANCE_EMS * max(row[0].size, following[0].size)


def _is_clear(rows: list[list[Segment]], columns: Sequence[_Span]) -> bool:
    """Return whether rows are surely a table, and neither code nor columns of prose."""
    segments = [segment for row in rows for segment in row]
    if any(segment.is_fixed for segment in segments):
        return False
    if _is_code_or_list(rows):
        return False
    mean_chars = sum(len(segment.text) for segment in segments) / len(segments)
    num_full = sum(1 for row in rows if len(row) == len(columns))
    return mean_chars <= _MAX_CELL_CHARS / max(1, 4 - len(columns)) and num_full >= len(rows) / 2


def _is_code_or_list(rows: list[list[Segment]]) -> bool:
    """Return whether rows are lines of code or of a list, with their numbers or comments set apart."""
    texts = [segment.text for row in rows for segment in row]
    num_code = sum(1 for text in texts if _CODE.search(text))
    num_marked = sum(1 for row in rows if len(row) == 2 and _LIST_MARK.match(row[0].text))
    return num_code >= len(texts) / 5 or num_marked > len(rows) / 2


def _table(rows: list[list[Segment]]) -> Table:
    """Return rows as a table."""
    columns: list[_Span] = []
    box = rows[0][0].box
    for row in rows:
        columns = _merged(columns, row)
        for segment in row:
            box = box.joined(segment.box)
    cells = [_cells(row, columns) for row in rows]
    return Table(tuple(tuple(row.get(index, "") for index in range(len(columns))) for row in cells), box)
