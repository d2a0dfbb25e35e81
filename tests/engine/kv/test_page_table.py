"""Page tables beside plain lists of tokens and positions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kv.page import Page
from engine.kv.page_table import PageReference, PageTable
from engine.kv.precision import KVSpec, Tier
from engine.kv.store import PageStore
from tests.engine.kv.oracle import Text

PAGE_TOKENS = 64
SPEC = KVSpec.parse("16; page=64")


def new_store() -> PageStore:
    """Return a store of pages of a model without layers, since a table never looks at arrays."""
    return PageStore({}, PAGE_TOKENS, 64)


def seal(table: PageTable, count: int = PAGE_TOKENS) -> Page:
    """Make a page of the first open tokens, which a store alone does with layers."""
    page = table.store.seal(
        table.open_tokens[:count], table.open_positions[:count], lambda layer: (None, None), Tier.HOT, SPEC
    )
    table.add_page(page)
    return page


def table_of(num_tokens: int, store: PageStore | None = None) -> PageTable:
    table = PageTable(store or new_store())
    table.append(range(num_tokens))
    while len(table.open_tokens) >= PAGE_TOKENS:
        seal(table)
    return table


def kept(table: PageTable, *spans: tuple[int, int]) -> np.ndarray:
    """Return marks for all tokens but those in the spans."""
    marks = np.ones(len(table.tokens), dtype=np.bool_)
    for start, stop in spans:
        marks[start:stop] = False
    return marks


def test_tokens_go_behind_one_another_and_into_pages() -> None:
    table = table_of(150)
    assert (len(table.references), table.num_sealed, table.next_position) == (2, 128, 150)
    assert table.tokens == table.positions == list(range(150))
    assert table.open_tokens == list(range(128, 150))


def test_dropped_tokens_leave_their_positions_unused() -> None:
    table = table_of(150)
    open_kept = table.keep(kept(table, (10, 20), (140, 150)))
    assert open_kept.tolist() == [True] * 12 + [False] * 10
    table.append([7])
    assert table.tokens == [*range(10), *range(20, 140), 7]
    assert table.positions == [*range(10), *range(20, 140), 150]


def test_a_page_without_a_token_is_freed_and_one_with_a_token_is_not() -> None:
    table = table_of(192)
    first, second, third = (reference.page for reference in table.references)
    table.keep(kept(table, (0, 64), (65, 128)))
    assert table.store.pages == {second, third}
    assert [reference.num_tokens for reference in table.references] == [1, 64]
    assert (first.references, second.references, third.references) == (0, 1, 1)


def test_keeping_everything_changes_nothing() -> None:
    table = table_of(130)
    version, references = table.version, table.references
    table.keep(kept(table))
    assert table.version == version
    assert table.references is references


def test_a_fork_shares_pages_and_nothing_else() -> None:
    table = table_of(130)
    fork = table.fork()
    assert {page.references for page in table.store.pages} == {2}
    fork.append([500])
    fork.keep(kept(fork, (0, 64)))
    assert table.tokens == table.positions == list(range(130))
    assert (table.next_position, fork.next_position) == (130, 131)
    assert sorted(page.references for page in table.store.pages) == [1, 2]


def test_a_table_that_is_dropped_hands_its_pages_over() -> None:
    table = table_of(130)
    store, fork = table.store, table.fork()
    del table
    store.defragment()
    assert {page.references for page in store.pages} == {1}
    own = table_of(64, store)
    del fork
    seal(other := table_of(1, store), 1)
    assert store.pages == {own.references[0].page, other.references[0].page}


def test_a_table_that_is_dropped_in_the_middle_of_a_change_changes_nothing() -> None:
    table, version = table_of(130), 0
    store, own = table.store, table_of(64, table.store)
    for page in store.pages:  # as closing gaps does, while cycles are collected
        if page is own.references[0].page:
            version = store.version
            del table
    assert (len(store.pages), store.version) == (3, version)
    store.defragment()
    assert store.pages == {own.references[0].page}


def test_the_last_page_is_opened_again_without_its_dropped_tokens() -> None:
    table = table_of(128)
    table.keep(kept(table, (70, 80), (100, 128)))
    table.reopen_last()
    assert table.open_tokens == table.open_positions == [*range(64, 70), *range(80, 100)]
    assert (len(table.references), len(table.store.pages)) == (1, 1)


def test_one_page_may_be_referred_to_twice_by_parts() -> None:
    table = table_of(128)
    first, second = table.references
    front, back = np.arange(64) < 30, np.arange(64) >= 40
    table.set_references(
        [PageReference(first.page, front), second, PageReference(first.page, back)],
    )
    assert table.tokens == [*range(30), *range(64, 128), *range(40, 64)]
    assert first.page.references == 2
    table.keep(kept(table, (0, 30)))
    assert first.page.references == 1
    assert table.tokens == [*range(64, 128), *range(40, 64)]


@settings(max_examples=100)
@given(data=st.data())
def test_a_table_is_a_list_of_tokens_and_positions(data: st.DataObject) -> None:
    store = new_store()
    table, text, number = PageTable(store), Text(), 0
    forks: list[tuple[PageTable, Text]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        action = data.draw(st.sampled_from(["append", "append", "keep", "fork", "seal", "switch", "reopen"]))
        if action == "append":
            count = data.draw(st.integers(1, 150))
            table.append(range(number, number + count))
            text.append(range(number, number + count))
            number += count
            while len(table.open_tokens) >= PAGE_TOKENS:
                seal(table)
        elif action == "keep":
            start = data.draw(st.integers(0, len(text.tokens)))
            stop = data.draw(st.integers(start, len(text.tokens)))
            table.keep(kept(table, (start, stop)))
            text.drop(start, stop)
        elif action == "fork":
            forks.append((table.fork(), text.copy()))
        elif action == "seal" and table.open_tokens:
            seal(table, len(table.open_tokens))
        elif action == "switch" and forks:
            forks.append((table, text))
            table, text = forks.pop(0)
        elif action == "reopen" and table.references and not table.open_tokens:
            table.reopen_last()
        for one, expected in [(table, text), *forks]:
            assert one.tokens == expected.tokens
            assert one.positions == expected.positions
            assert one.next_position == expected.next_position
            assert one.num_sealed + len(one.open_tokens) == len(expected.tokens)
    counts: dict[Page, int] = dict.fromkeys(store.pages, 0)
    for one in [table, *(fork for fork, _ in forks)]:
        for reference in one.references:
            counts[reference.page] += 1
    assert counts == {page: page.references for page in store.pages}
    assert 0 not in counts.values()
