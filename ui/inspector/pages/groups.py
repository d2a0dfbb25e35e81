"""Pages by what their text is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.kv.page_map import PageMap, TextSpan


@dataclass(frozen=True)
class PageGroup:
    """Neighbouring cells of the map whose text is mostly one thing.

    Attributes:
        span: what the text is; None where that is not known.
        first: the first cell; cells are the pages and, behind them, the open page.
        count: how many cells.
    """

    span: TextSpan | None
    first: int
    count: int


def num_cells(page_map: PageMap) -> int:
    """Return how many pages there are for people: the open one is counted like any other."""
    return len(page_map.pages) + bool(page_map.open_tokens)


def cell_tokens(page_map: PageMap) -> list[int]:
    """Return the tokens of each cell: of the pages, and of the open page where there is one."""
    open_tokens = len(page_map.open_tokens)
    return [*(page.num_tokens for page in page_map.pages), *([open_tokens] if open_tokens else [])]


def group_pages(page_map: PageMap) -> tuple[PageGroup, ...]:
    """Return the cells of a map in groups; a cell across spans belongs to the one with most of its tokens."""
    groups: list[PageGroup] = []
    owners = _owners(cell_tokens(page_map), page_map.spans)
    first = 0
    for owner, cells in itertools.groupby(owners):
        count = sum(1 for _ in cells)
        groups.append(PageGroup(None if owner is None else page_map.spans[owner], first, count))
        first += count
    return tuple(groups)


def _owners(counts: Sequence[int], spans: Sequence[TextSpan]) -> Iterator[int | None]:
    """Yield the number of the span that most tokens of each cell are of, None where most are of none."""
    start = number = 0
    for count in counts:
        stop = start + count
        while number < len(spans) and spans[number].stop <= start:
            number += 1
        is_inside = number < len(spans) and spans[number].start <= start and stop <= spans[number].stop
        yield number if is_inside else _winner(start, stop, number, spans)
        start = stop


def _winner(start: int, stop: int, number: int, spans: Sequence[TextSpan]) -> int | None:
    """Return the span, from `number` on, that most tokens from `start` to `stop` are of."""
    shares: dict[int | None, int] = {None: stop - start}
    for at in range(number, len(spans)):
        if spans[at].start >= stop:
            break
        shares[at] = min(stop, spans[at].stop) - max(start, spans[at].start)
        shares[None] -= shares[at]
    return max(shares, key=lambda owner: (shares[owner], owner is not None))
