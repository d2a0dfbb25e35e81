from __future__ import annotations

import dataclasses

import pytest

from app.cli.ask_output import _kv_figures
from app.kv_text import bits_text, bits_words, budget_text
from tests.app.store.samples import USAGE


@pytest.mark.parametrize(
    ("bits", "text"),
    [((8.0, 8.0), "8"), ((6.0, 4.0), "k6v4"), ((5.5, 4.0), "k5.5v4"), ((4.71, 4.69), "4.7")],
)
def test_bits_are_written_as_a_precision_is(bits: tuple[float, float], text: str) -> None:
    assert bits_text(bits) == text


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        ((8.0, 8.0), "8 bits"),
        ((6.0, 4.0), "6 bits for keys, 4 for values"),
        ((2.0, 2.94), "2 bits for keys, 2.9 for values on average"),
        ((4.71, 4.69), "4.7 bits on average"),
    ],
)
def test_bits_are_told_in_words_where_there_is_room(bits: tuple[float, float], words: str) -> None:
    assert bits_words(bits) == words


@pytest.mark.parametrize(
    ("pages", "caught", "text"),
    [
        (None, 1.0, ""),
        (8, None, "8 pages of each precision"),
        (8, 1.0, "100.0% caught by 8 pages"),
        (8, 0.9999, "99.9% caught by 8 pages"),
        (1, 0.97, "97.0% caught by 1 page"),
    ],
)
def test_attention_that_is_not_all_caught_is_never_rounded_to_all(
    pages: int | None, caught: float | None, text: str
) -> None:
    assert budget_text(dataclasses.replace(USAGE, attention_pages=pages, caught=caught)) == text


def test_the_terminal_tells_what_was_asked_for_and_what_is_held() -> None:
    assert _kv_figures(dataclasses.replace(USAGE, attention_pages=4)) == (
        "123 KB; k8v4 bits requested, k8v3 effective; pages: 1 hot, 2 warm, 1 cold; "
        "attention: 97.0% caught by 4 pages"
    )
    young = dataclasses.replace(
        USAGE, hot_pages=0, warm_pages=0, cold_pages=0, effective=None, attention_pages=None
    )
    assert _kv_figures(young) == (
        "123 KB; k8v4 bits requested, no cold page yet; pages: 0 hot, 0 warm, 0 cold"
    )
    assert _kv_figures(dataclasses.replace(young, requested=None)) == "123 KB"
