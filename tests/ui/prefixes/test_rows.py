from __future__ import annotations

from datetime import UTC, datetime

from app.store.prefixes.records import PrefixEntry
from ui.prefixes.rows import PrefixRow, figures_of, row_sentence, rows_of

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).astimezone()


def entry(conversation_id: int, nbytes: int, *, day: int = 1, is_pinned: bool = False) -> PrefixEntry:
    used = datetime(2026, 11, day, 12, tzinfo=UTC)
    return PrefixEntry(conversation_id, 2, nbytes, nbytes // 4, 1000 * conversation_id, used, is_pinned)


def test_each_conversation_is_a_row_with_its_title_and_all_others_are_one_row_below() -> None:
    entries = [entry(3, 400, day=3), entry(9, 100, day=2), entry(1, 800, is_pinned=True), entry(0, 20)]
    rows = rows_of(entries, {1: "Papers", 3: "Trips"})
    assert [(row.title, row.conversation_ids, row.nbytes) for row in rows] == [
        ("Trips", (3,), 400),
        ("Papers", (1,), 800),
        ("Read without a conversation", (9, 0), 120),
    ]
    assert [row.is_pinned for row in rows] == [False, True, False]
    assert [row.is_conversation for row in rows] == [True, True, False]
    assert (rows[2].shared_nbytes, rows[2].num_tokens) == (30, 0)
    assert rows[2].last_used == entry(9, 100, day=2).last_used


def test_what_is_not_there_is_a_dash_and_is_not_said() -> None:
    row = PrefixRow((1,), "Papers", True, 0, 81_000_000, 0, NOW, False)
    assert figures_of(row, NOW)[:3] == ("–", "81 MB", "–")
    assert row_sentence(row, NOW) == f"Papers, 81 MB on disk, last used today at {NOW:%H:%M}"


def test_a_row_says_all_that_it_shows() -> None:
    row = PrefixRow((1,), "Papers", True, 6012, 40_000_000, 12_000_000, NOW, True)
    assert row_sentence(row, NOW) == (
        "Papers, pinned, 6,012 tokens, 40 MB on disk, 12 MB of it shared with other conversations, "
        f"last used today at {NOW:%H:%M}"
    )
