"""Cutting, moving and joining what says which tokens are which text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from engine.kv.page_map import TextSpan


def between(spans: Iterable[TextSpan], start: int, stop: int) -> Iterator[TextSpan]:
    """Yield what of the spans lies from one token to before another."""
    for span in spans:
        first, end = max(span.start, start), min(span.stop, stop)
        if first < end:
            marker_tokens = max(0, min(span.start + span.marker_tokens, end) - first)
            yield dataclasses.replace(span, start=first, stop=end, marker_tokens=marker_tokens)


def shifted(spans: Iterable[TextSpan], by: int) -> Iterator[TextSpan]:
    """Yield the spans so many tokens further on."""
    for span in spans:
        yield dataclasses.replace(span, start=span.start + by, stop=span.stop + by)


def joined(spans: Iterable[TextSpan]) -> Iterator[TextSpan]:
    """Yield the spans, parts of one that follow each other as one."""
    last: TextSpan | None = None
    for span in spans:
        if last is not None and last.stop == span.start and _is_one(last, span):
            is_marker = last.marker_tokens == last.stop - last.start
            marker_tokens = last.marker_tokens + (span.marker_tokens if is_marker else 0)
            last = dataclasses.replace(last, stop=span.stop, marker_tokens=marker_tokens)
            continue
        if last is not None:
            yield last
        last = span
    if last is not None:
        yield last


def _is_one(first: TextSpan, second: TextSpan) -> bool:
    return (first.kind, first.title, first.key) == (second.kind, second.title, second.key)
