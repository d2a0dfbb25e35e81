"""What is stored of a conversation's context."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.documents.ways import DocumentWay
from app.ledger.records import ContextChange, ItemMark, LedgerRows, SummarySource, SummaryState
from app.store.conversations import ConversationStore
from app.store.errors import NotFoundError
from tests.app.store.samples import SUMMARY, add_conversation

DROPPED = ItemMark("m1", is_dropped=True)
PINNED = ItemMark("a7", is_pinned=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> ConversationStore:
    return ConversationStore.open(tmp_path_factory.mktemp("store") / "conversations.db")


def test_a_conversation_begins_without_marks_and_summaries(store: ConversationStore) -> None:
    assert store.ledger(store.create_conversation().id) == LedgerRows()


def test_marks_and_summaries_are_those_of_their_conversation(store: ConversationStore) -> None:
    mine, other = store.create_conversation().id, store.create_conversation().id
    extract = dataclasses.replace(
        SUMMARY, source=SummarySource.EXTRACT, note="Why.", model="", state=SummaryState.PREPARED
    )
    first = store.add_summary(mine, SUMMARY, ContextChange((DROPPED, PINNED)))
    second = store.add_summary(mine, extract)
    theirs = store.add_summary(other, SUMMARY)
    assert len({first.id, second.id, theirs.id}) == 3
    assert (first, second) == (
        dataclasses.replace(SUMMARY, id=first.id),
        dataclasses.replace(extract, id=second.id),
    )
    assert store.ledger(mine) == LedgerRows({"m1": DROPPED, "a7": PINNED}, (first, second))
    assert store.ledger(other) == LedgerRows({}, (theirs,))


def test_an_item_of_which_nothing_is_set_has_no_mark(store: ConversationStore) -> None:
    mine = store.create_conversation().id
    assert store.change_context(mine, ContextChange((DROPPED,))) == ContextChange((ItemMark("m1"),))
    assert store.change_context(mine, ContextChange((ItemMark("m1"),))) == ContextChange((DROPPED,))
    assert store.ledger(mine).marks == {}


KEYS = st.sampled_from(["m1", "m2", "a1"])
WAYS = st.none() | st.sampled_from(DocumentWay)
MARKS = st.builds(ItemMark, KEYS, st.booleans(), st.booleans(), WAYS, st.integers(0, 2))
STATES = st.tuples(st.integers(0, 1), st.sampled_from(SummaryState))


@settings(max_examples=25, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.lists(MARKS, max_size=3), st.lists(STATES, max_size=3)), min_size=1, max_size=6
    )
)
def test_changes_that_are_undone_in_reverse_leave_what_was_there(
    shared: ConversationStore, changes: list[tuple[list[ItemMark], list[tuple[int, SummaryState]]]]
) -> None:
    mine = shared.create_conversation().id
    ids = [shared.add_summary(mine, SUMMARY).id for _ in range(2)]
    seen, inverses = [], []
    for marks, states in changes:
        seen.append(shared.ledger(mine))
        change = ContextChange(tuple(marks), tuple((ids[index], state) for index, state in states))
        inverses.append(shared.change_context(mine, change))
        after = shared.ledger(mine)
        for mark in {mark.key: mark for mark in marks}.values():
            assert after.marks.get(mark.key, ItemMark(mark.key)) == mark
        found = {summary.id: summary.state for summary in after.summaries}
        assert found.items() >= dict(change.summaries).items()
    for before, inverse in zip(reversed(seen), reversed(inverses), strict=True):
        shared.change_context(mine, inverse)
        assert shared.ledger(mine) == before


def test_a_change_is_undone_to_what_another_connection_wrote_before_it(
    store: ConversationStore, db_path: Path
) -> None:
    mine = store.create_conversation().id
    summary = store.add_summary(mine, SUMMARY)
    read = store.ledger(mine)
    other = ConversationStore.open(db_path)
    other.change_context(mine, ContextChange((PINNED,), ((summary.id, SummaryState.RETIRED),)))
    other.close()
    assert "a7" not in read.marks
    dropped = dataclasses.replace(PINNED, is_pinned=False, is_dropped=True)
    inverse = store.change_context(mine, ContextChange((dropped,), ((summary.id, SummaryState.USED),)))
    assert inverse == ContextChange((PINNED,), ((summary.id, SummaryState.RETIRED),))


def test_a_change_of_what_is_not_there_changes_nothing(store: ConversationStore) -> None:
    mine, other = store.create_conversation().id, store.create_conversation().id
    theirs = store.add_summary(other, SUMMARY)
    change = ContextChange((DROPPED,), ((theirs.id, SummaryState.RETIRED),))
    with pytest.raises(NotFoundError, match="summary"):
        store.change_context(mine, change)
    with pytest.raises(NotFoundError, match="summary"):
        store.add_summary(mine, SUMMARY, change)
    assert store.ledger(mine) == LedgerRows()
    assert store.ledger(other).summaries == (theirs,)
    for call in (
        lambda: store.ledger(99),
        lambda: store.change_context(99, ContextChange((DROPPED,))),
        lambda: store.add_summary(99, SUMMARY),
    ):
        with pytest.raises(NotFoundError, match="conversation"):
            call()


@pytest.mark.parametrize(
    "damage",
    ["covers = '[\"m1\", '", "covers = '[1]'", "covers = '7'", "source = 'guess'", "state = 'lost'"],
)
def test_a_summary_that_cannot_be_read_is_as_if_it_were_not_there(
    store: ConversationStore, db_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    mine = store.create_conversation().id
    damaged, whole = store.add_summary(mine, SUMMARY), store.add_summary(mine, SUMMARY)
    with closing(sqlite3.connect(db_path)) as conn, conn:
        conn.execute("DROP TRIGGER summaries_final")
        conn.execute(f"UPDATE summaries SET {damage} WHERE id = ?", (damaged.id,))
    assert store.ledger(mine).summaries == (whole,)
    assert f"summary {damaged.id} cannot be read" in caplog.text


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE summaries SET text = 'other'",
        "UPDATE summaries SET covers = '[]'",
        "UPDATE summaries SET id = 9",
        "DELETE FROM summaries",
    ],
)
def test_the_words_of_a_summary_never_change(store: ConversationStore, db_path: Path, sql: str) -> None:
    mine = store.create_conversation().id
    summary = store.add_summary(mine, SUMMARY)
    with closing(sqlite3.connect(db_path)) as conn, pytest.raises(sqlite3.IntegrityError):
        conn.execute(sql)
    assert store.ledger(mine).summaries == (summary,)


def test_what_is_purged_leaves_no_word_of_its_summaries(store: ConversationStore, db_path: Path) -> None:
    gone, kept = add_conversation(store, 1), add_conversation(store, 1)
    secret = dataclasses.replace(SUMMARY, text="A secret of owls. " * 400, note="A secret note.")
    stays = store.add_summary(kept, SUMMARY, ContextChange((PINNED,)))
    last = store.add_summary(gone, secret, ContextChange((DROPPED,)))
    store.delete(gone)
    assert store.purge_deleted() == 1
    assert store.ledger(kept) == LedgerRows({"a7": PINNED}, (stays,))
    with closing(sqlite3.connect(db_path)) as conn:
        assert conn.execute("SELECT count(*) FROM context_marks").fetchone() == (1,)
    assert not [file for file in db_path.parent.iterdir() if b"secret" in file.read_bytes()]
    assert store.add_summary(kept, SUMMARY).id > last.id
