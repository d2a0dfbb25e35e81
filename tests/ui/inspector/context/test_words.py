"""What is told of a context and its rows."""

from __future__ import annotations

import dataclasses

import pytest

from app.ledger.entries import EntryState, LedgerReport
from tests.ui.inspector.context.samples import SYSTEM, document, left, summary, summary_row, turn
from ui.inspector.context.delegate import heat_level
from ui.inspector.context.words import (
    author_text,
    beside_text,
    beside_tip,
    row_sentence,
    takes_text,
    tip_text,
)

HELD = LedgerReport(tokens=3_412, nbytes=31_000_000, limit_tokens=4_096)


def plain(text: str) -> str:
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_the_context_takes_tokens_of_the_limit_and_bytes() -> None:
    assert plain(takes_text(HELD)) == "Takes 3,412 of 4,096 tokens, 31 MB"


def test_an_estimate_is_called_so_and_what_is_unknown_is_left_out() -> None:
    assert takes_text(LedgerReport(tokens=900, is_about=True, limit_tokens=4_096)) == (
        "Takes about 900 of 4,096 tokens"
    )
    assert takes_text(LedgerReport(limit_tokens=4_096)) == "The tokens are not counted yet."
    assert takes_text(LedgerReport()) == "Without a model, what the context takes is not known."


def test_what_was_restored_from_disk_is_not_said_to_be_read_again() -> None:
    row = turn(2, state=EntryState.UNREAD, is_on_disk=True)
    assert "comes back with the next message" in row_sentence(row) and "not read yet" not in row_sentence(row)


def test_empty_positions_and_versions_are_told_where_there_are_any() -> None:
    assert beside_text(HELD) == ""
    both = dataclasses.replace(HELD, empty_positions=2_054, versions=1, versions_nbytes=3_100_000)
    assert plain(beside_text(both)) == "2,054 empty positions · 1 other version, 3.1 MB"


def test_the_bytes_that_no_row_takes_are_told() -> None:
    roomy = dataclasses.replace(HELD, unused_nbytes=8_000_000)
    assert plain(beside_text(roomy)) == "8.0 MB unused room"
    assert "Rows show what their own tokens take." in beside_tip(roomy)


def test_a_row_is_read_aloud_with_its_kind_title_tokens_and_state() -> None:
    row = left(turn(12), EntryState.SUMMARIZED, title="What is the budget?")
    assert row_sentence(row) == "Turn 12, What is the budget?, 120 tokens, summarized"
    pinned = dataclasses.replace(turn(3), title="And in winter?", is_pinned=True)
    assert row_sentence(pinned) == "Turn 3, And in winter?, 120 tokens, 780 KB, in context, pinned"
    owls = left(document(1, "owls.pdf"), is_on_disk=True, is_about=True)
    assert row_sentence(owls) == "Document, owls.pdf, about 1,130 tokens, left out, on disk"


def test_the_tip_says_what_on_disk_and_not_read_yet_mean() -> None:
    on_disk = tip_text(left(turn(2), is_on_disk=True))
    assert "comes back without being read" in on_disk and "does not read it" in on_disk
    assert "with the next message" in tip_text(turn(2, state=EntryState.UNREAD))


def test_who_wrote_a_summary_is_told_and_why_it_is_not_the_model() -> None:
    assert author_text(summary()) == "Written by SmolLM2-135M-Instruct. It replaces about 1,204 tokens."
    assert author_text(summary(is_extract=True)) == (
        "The model's summary repeated itself, so these are sentences of the text itself. "
        "It replaces about 1,204 tokens."
    )
    bare = dataclasses.replace(summary(is_extract=True), note="")
    assert author_text(bare) == "Sentences of the text itself. It replaces about 1,204 tokens."


def test_the_bar_of_heat_is_half_at_the_average_and_grows_by_factors() -> None:
    def level(rate: float | None) -> float | None:
        return heat_level(turn(1, heat_rate=rate))

    assert level(None) is None
    assert level(1.0) == pytest.approx(0.5)
    assert level(2.0) == pytest.approx(0.5 + 1 / 6)  # 8 times is the longest: three doublings
    assert level(100.0) == pytest.approx(1.0) and level(0.0) == pytest.approx(0.0)


def test_nothing_is_told_of_figures_that_are_unknown() -> None:
    bare = dataclasses.replace(turn(1), tokens=None, nbytes=None, heat=None, heat_rate=None, title="Hello")
    assert row_sentence(bare) == "Turn 1, Hello, in context"
    assert "attention" not in tip_text(bare) and "token" not in tip_text(bare)
    assert row_sentence(SYSTEM).startswith("System prompt, You are a careful assistant., 34 tokens")
    assert row_sentence(summary_row(1, 2, 4)).startswith("Summary, Summary of turns 2 to 3, 124 tokens")
