from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.kv.page_map import PageMap, SpanKind, TextSpan
from tests.ui.inspector.pages.samples import PAGE_TOKENS, page, page_map
from ui.inspector.pages.groups import group_pages


def spans(*stops: int) -> tuple[TextSpan, ...]:
    """Return spans one behind the other."""
    starts = (0, *stops)
    return tuple(
        TextSpan(SpanKind.USER, f"{number}", starts[number], stop) for number, stop in enumerate(stops)
    )


def titles(shown: PageMap) -> list[str | None]:
    """Return the title of the group of each cell."""
    return [
        None if group.span is None else group.span.title
        for group in group_pages(shown)
        for _ in range(group.count)
    ]


def test_a_page_across_spans_belongs_to_the_one_with_most_of_its_tokens() -> None:
    shown = page_map(page(0), page(1), page(2), spans=spans(64 + 20, 64 + 50, 192))

    assert titles(shown) == ["0", "1", "2"]


def test_the_open_page_is_the_last_cell() -> None:
    shown = page_map(page(0), open_tokens=10, spans=spans(64, 74))

    assert titles(shown) == ["0", "1"]
    assert [(group.first, group.count) for group in group_pages(shown)] == [(0, 1), (1, 1)]


def test_pages_that_are_mostly_of_no_span_are_a_group_without_a_title() -> None:
    between = (TextSpan(SpanKind.USER, "a", 0, 70), TextSpan(SpanKind.USER, "b", 180, 256))
    shown = page_map(*(page(number) for number in range(4)), spans=between)

    assert titles(shown) == ["a", None, None, "b"]


def test_tokens_that_were_dropped_from_a_page_do_not_count() -> None:
    short = page(0, tokens=(1, 2, 3))
    shown = page_map(short, page(1), spans=spans(3, 67))

    assert titles(shown) == ["0", "1"]


def test_a_map_without_pages_has_no_groups() -> None:
    assert group_pages(page_map()) == ()


@given(
    sizes=st.lists(st.integers(1, PAGE_TOKENS), min_size=1, max_size=12),
    lengths=st.lists(st.integers(1, 150), max_size=8),
    gaps=st.lists(st.integers(0, 60), min_size=8, max_size=8),
)
def test_grouping_agrees_with_counting_every_token(
    sizes: list[int], lengths: list[int], gaps: list[int]
) -> None:
    at, named = 0, []
    for number, length in enumerate(lengths):
        at += gaps[number]
        named.append(TextSpan(SpanKind.USER, f"{number}", at, at + length))
        at += length
    shown = page_map(
        *(page(number, tokens=(1,) * size) for number, size in enumerate(sizes)), spans=tuple(named)
    )
    owner = {token: span.title for span in named for token in range(span.start, span.stop)}

    found = titles(shown)

    start = 0
    for title, size in zip(found, sizes, strict=True):
        votes = Counter(owner.get(token) for token in range(start, start + size))
        assert votes[title] == max(votes.values())
        start += size
