"""Which passages of its documents an answer attended to most, by characters of what was written of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from engine.events import AttendedPassage
from engine.kv.attended import AttendedBin
from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt

MOST_PASSAGES = 5
MOST_BINS = 3
"""A passage is at most so many places in a row."""
LEAST_RATE = 3.0
"""A place of note got so many times the attention that places of the documents got on average."""

END_TOKENS = 16
END_WEIGHT = 0.25
"""What places count that reach into the last tokens of a document."""


@dataclass
class _Passage:
    span: TextSpan
    bins: list[AttendedBin]

    @property
    def weight(self) -> float:
        return sum(each.weight for each in self.bins)

    def takes(self, span: TextSpan, place: AttendedBin) -> bool:
        """Return whether a place that lies beside it becomes a part of it."""
        is_beside = place.stop == self.bins[0].start or place.start == self.bins[-1].stop
        return span == self.span and is_beside and len(self.bins) < MOST_BINS

    def add(self, place: AttendedBin) -> None:
        self.bins = sorted([*self.bins, place], key=lambda each: each.start)


def attended_passages(
    bins: Sequence[AttendedBin], text: Prompt, characters: Callable[[Sequence[int]], list[int]]
) -> tuple[AttendedPassage, ...]:
    """Return the passages of documents with most attention, those with more of it first.

    Args:
        bins: where the attention went.
        text: what is held.
        characters: returns how many characters each of some tokens writes.
    """
    found = [place for span in text.spans if span.kind is SpanKind.DOCUMENT for place in _inside(span, bins)]
    total = sum(place.weight for _, place in found)
    least = LEAST_RATE * total / len(found) if found else 0.0
    passages: list[_Passage] = []
    for span, place in sorted(found, key=lambda each: -each[1].weight):
        beside = next((each for each in passages if each.takes(span, place)), None)
        if place.weight < least or (beside is None and len(passages) == MOST_PASSAGES):
            break
        if beside is not None:
            beside.add(place)
        else:
            passages.append(_Passage(span, [place]))
    ends = {
        span: [0, *accumulate(characters(text.tokens[_first(span) : span.stop]))]
        for span in {each.span for each in passages}
    }
    ordered = sorted(passages, key=lambda each: -each.weight)
    return tuple(_written(each, total, ends[each.span]) for each in ordered)


def _first(span: TextSpan) -> int:
    """Return the index of the first token of its words."""
    return span.start + span.marker_tokens


def _inside(span: TextSpan, bins: Sequence[AttendedBin]) -> Iterator[tuple[TextSpan, AttendedBin]]:
    """Yield the places that are mostly in a span, without the first of all, which models always attend to.

    The end counts for less: what is read next looks back at the words that end a document.
    """
    for place in bins:
        start, stop = max(place.start, _first(span)), min(place.stop, span.stop)
        if place.start and 2 * (stop - start) > place.stop - place.start:
            weight = place.weight * (END_WEIGHT if stop > span.stop - END_TOKENS else 1.0)
            yield span, AttendedBin(start, stop, weight)


def _written(passage: _Passage, total: float, ends: Sequence[int]) -> AttendedPassage:
    """Return a passage by its characters; `ends` counts those before each token of its span, and all."""
    first = _first(passage.span)
    start, stop = passage.bins[0].start - first, passage.bins[-1].stop - first
    return AttendedPassage(passage.span.key, ends[start], ends[stop], passage.weight / total)
