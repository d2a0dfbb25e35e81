"""Which passages of documents are told of an answer, by their characters."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.attended import MOST_PASSAGES, attended_passages
from engine.events import AttendedPassage
from engine.kv.attended import AttendedBin
from engine.kv.page_map import SpanKind, TextSpan
from engine.spans import Prompt

BOOK = TextSpan(SpanKind.DOCUMENT, "A book", 10, 330, "a1", marker_tokens=6)
TEXT = Prompt(
    list(range(400)),
    (
        TextSpan(SpanKind.SYSTEM, "Be brief.", 0, 10),
        BOOK,
        TextSpan(SpanKind.USER, "Why?", 330, 350, "m1"),
        TextSpan(SpanKind.ASSISTANT, "", 350, 400, "m2"),
    ),
)


def three_each(tokens: Sequence[int]) -> list[int]:
    return [3] * len(tokens)


def told(*weights: float) -> tuple[AttendedPassage, ...]:
    """Return what is told where places of 32 tokens have these weights, and 0.001 from there on."""
    filled = [*weights, *[0.001] * (13 - len(weights))]
    bins = [AttendedBin(32 * at, min(32 * (at + 1), 400), weight) for at, weight in enumerate(filled)]
    return attended_passages(bins, TEXT, three_each)


def test_the_passage_with_most_attention_comes_first_at_its_characters() -> None:
    first, second = told(0, 0, 0.4, 0, 0, 0.6)
    # Its words begin at token 16: 160 - 16 tokens of three characters before it.
    assert (first.key, first.start, first.stop) == ("a1", 3 * 144, 3 * 176)
    assert (second.start, second.stop) == (3 * 48, 3 * 80)
    assert first.share == pytest.approx(0.6, abs=0.01) and second.share == pytest.approx(0.4, abs=0.01)


def test_places_beside_each_other_are_one_passage() -> None:
    (one,) = told(0, 0, 0, 0.5, 0.4)
    assert (one.start, one.stop) == (3 * 80, 3 * 144)


def test_the_first_place_of_all_questions_and_answers_are_no_passages() -> None:
    assert told(9.0, *[0.1] * 9, 9.0, 9.0, 9.0) == ()


def test_the_end_of_a_document_counts_for_less() -> None:
    first, *_ = told(0, 0, 0, 0.3, 0, 0, 0, 0, 0, 0.6)
    assert first.start == 3 * 80


def test_where_all_of_a_document_gets_about_the_same_nothing_is_told() -> None:
    assert told(*[0.1] * 13) == ()
    assert attended_passages([], TEXT, three_each) == ()


def test_the_characters_of_a_document_are_counted_once() -> None:
    counted: list[int] = []

    def characters(tokens: Sequence[int]) -> list[int]:
        counted.append(len(tokens))
        return three_each(tokens)

    bins = [AttendedBin(32 * at, 32 * at + 32, 0.4 if at in (2, 6) else 0.001) for at in range(10)]
    assert len(attended_passages(bins, TEXT, characters)) == 2
    assert counted == [BOOK.stop - BOOK.start - BOOK.marker_tokens]


def test_only_the_passages_with_most_attention_are_told() -> None:
    spans = (TextSpan(SpanKind.DOCUMENT, "A book", 0, 32 * 100, "a1"),)
    weights = [0.9 if place % 10 == 5 else 0.001 for place in range(100)]
    bins = [AttendedBin(32 * at, 32 * at + 32, weight) for at, weight in enumerate(weights)]
    assert len(attended_passages(bins, Prompt([0] * 3200, spans), three_each)) == MOST_PASSAGES
