"""The cap, the order of eviction, and deletion of which nothing is left in any file."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.housekeeping import Housekeeping, most_nbytes, taken_nbytes
from app.store.prefixes.records import MOST_NBYTES
from tests.app.store.prefixes.databases import Clock, chain_of, keys_of, opened, put
from tests.app.store.prefixes.stored_files import assert_whole, content_of, writing_elsewhere
from tests.app.store.prefixes.stored_texts import MODEL, blob_of, key_of, page_of, sequence_of

MB = 10**6


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(prefixes_path: Path, clock: Clock) -> Iterator[PrefixDatabase]:
    with opened(prefixes_path, clock) as database:
        yield database


@pytest.fixture
def housekeeping(database: PrefixDatabase) -> Housekeeping:
    return Housekeeping(database)


@dataclass(frozen=True)
class Case:
    """A page that is put into the store, and what is put behind it.

    Attributes:
        parent: which page it is read behind, by number; None for the first of a text.
        conversation_id: whose it is.
        time: at which it is put.
    """

    parent: int | None
    conversation_id: int
    time: int


@st.composite
def forests(draw: st.DrawFn) -> list[Case]:
    cases: list[Case] = []
    for number in range(draw(st.integers(4, 12))):
        parent = draw(st.none() | st.integers(0, number - 1)) if number else None
        cases.append(Case(parent, draw(st.integers(0, 3)), draw(st.integers(0, 4))))
    return cases


def order_of_eviction(cases: list[Case], pinned: set[int], sequences: dict[int, int]) -> list[str]:
    """A second implementation of the rule, on lists: the names of pages and manifests as they are to go."""

    def ancestry(number: int) -> Iterator[int]:
        parent: int | None = number
        while parent is not None:
            yield parent
            parent = cases[parent].parent

    users: list[set[int]] = [set() for _ in cases]
    for number, case in enumerate(cases):
        for ancestor in ancestry(number):
            users[ancestor].add(case.conversation_id)
    left = set(range(len(cases)))
    manifests = dict(sequences)
    order = []
    while left or manifests:
        parents = {cases[number].parent for number in left}
        candidates: list[tuple[bool, int, int, int, int]] = [
            (bool(users[number] & pinned), cases[number].time, 0, 1 - len(list(ancestry(number))), number)
            for number in left - parents
        ]
        candidates += [(owner in pinned, time, 1, 0, owner) for owner, time in manifests.items()]
        *_, is_manifest, _, name = min(candidates)
        order.append(f"manifest {name}" if is_manifest else f"page {name}")
        if is_manifest:
            del manifests[name]
        else:
            left.remove(name)
    return order


class TestEviction:
    @settings(max_examples=40, deadline=None)
    @given(
        cases=forests(),
        pinned=st.sets(st.integers(1, 3), max_size=2),
        sequences=st.dictionaries(st.integers(1, 3), st.integers(0, 4)),
        share=st.floats(0.4, 0.9),
    )
    def test_the_least_recently_used_goes_first_parents_after_children_and_pinned_last(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        cases: list[Case],
        pinned: set[int],
        sequences: dict[int, int],
        share: float,
    ) -> None:
        clock = Clock()
        path = tmp_path_factory.mktemp("evicted") / "prefixes.db"
        with opened(path, clock) as database:
            for number, case in enumerate(cases):
                clock.now_s = 1000.0 + case.time
                parent = "" if case.parent is None else f"page {case.parent}"
                depth = len(list(self.depth(cases, number)))
                page = page_of(f"page {number}", case.conversation_id, parent, nbytes=150_000)
                database.put_page(replace(page, position=depth * 16))
            for conversation_id, time in sequences.items():
                clock.now_s = 1000.0 + time
                database.put_sequence(sequence_of(conversation_id))
            for conversation_id in pinned:
                database.pin(conversation_id, True)
            Housekeeping(database).empty_log()
            before = self.names(database, cases)
            evicted = Housekeeping(database).make_room(0, int(share * taken_nbytes(path)))
            gone = before - self.names(database, cases)
        order = order_of_eviction(cases, pinned, sequences)
        assert gone == set(order[: len(gone)])
        if evicted is not None:
            assert evicted == sum(name.startswith("page") for name in gone)

    @staticmethod
    def depth(cases: list[Case], number: int) -> Iterator[int]:
        parent = cases[number].parent
        while parent is not None:
            yield parent
            parent = cases[parent].parent

    @staticmethod
    def names(database: PrefixDatabase, cases: list[Case]) -> set[str]:
        pages = {f"page {n}" for n in range(len(cases)) if database.read_page(key_of(f"page {n}"))}
        return pages | {f"manifest {n}" for n in range(4) if database.find_sequence(n, MODEL)}

    def test_the_end_of_the_text_that_was_used_longest_ago_goes_first(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path, clock: Clock
    ) -> None:
        for name in ("old", "new"):
            put(database, chain_of(name, 20, nbytes=100_000))
            clock.now_s += 100
        database.touch(keys_of("old", 20))
        clock.now_s += 100
        housekeeping.empty_log()
        assert housekeeping.make_room(0, taken_nbytes(prefixes_path) - 500_000)
        left = len(database.find_pages(keys_of("new", 20)))
        assert 5 <= left < 17
        assert len(database.find_pages(keys_of("old", 20))) == 20
        assert housekeeping.num_pages() == 20 + left

    @pytest.mark.parametrize("is_used_again", [False, True])
    def test_what_is_read_after_the_clock_was_set_back_stays_and_what_was_there_goes_in_its_order(
        self,
        database: PrefixDatabase,
        housekeeping: Housekeeping,
        prefixes_path: Path,
        clock: Clock,
        is_used_again: bool,
    ) -> None:
        for name in ("older", "newer"):
            clock.now_s += 100
            put(database, chain_of(name, 10, nbytes=100_000))
        clock.now_s -= 500_000
        if is_used_again:
            database.touch(keys_of("older", 10))
        clock.now_s += 100
        put(database, chain_of("after", 10, nbytes=100_000))
        housekeeping.empty_log()
        assert housekeeping.make_room(0, taken_nbytes(prefixes_path) - 500_000)
        left = {name: len(database.find_pages(keys_of(name, 10))) for name in ("older", "newer", "after")}
        first = "newer" if is_used_again else "older"
        assert left.pop(first) < 7
        assert set(left.values()) == {10}
        assert housekeeping.entries()[0].last_used.timestamp() == clock.now_s

    def test_the_files_never_take_more_than_the_limit(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path, clock: Clock
    ) -> None:
        limit = 5 * MB
        evicted = 0
        for page in chain_of("text", 30, nbytes=400_000):
            clock.now_s += 1
            room = housekeeping.make_room(len(page.blob), limit)
            assert room is not None
            evicted += room
            database.put_page(replace(page, parent=b""))
            assert taken_nbytes(prefixes_path) <= limit
        assert housekeeping.num_pages() == 30 - evicted
        assert housekeeping.num_pages() * 400_000 > limit / 2
        assert database.read_page(key_of("text 29")) is not None

    def test_nothing_goes_for_what_does_not_fit_at_all(
        self, database: PrefixDatabase, housekeeping: Housekeeping
    ) -> None:
        put(database, chain_of("text", 3))
        assert housekeeping.make_room(2 * MB, MB) is None
        assert housekeeping.num_pages() == 3

    def test_where_there_is_room_nothing_goes(
        self, database: PrefixDatabase, housekeeping: Housekeeping
    ) -> None:
        put(database, chain_of("text", 3))
        assert housekeeping.make_room(100_000, 10 * MB) == 0
        assert housekeeping.num_pages() == 3


class TestTheLimit:
    def test_it_is_what_is_wanted_and_no_more_than_a_share_of_the_disk(self, tmp_path: Path) -> None:
        path = tmp_path / "not there yet" / "prefixes.db"
        assert most_nbytes(path, 1000) == 1000
        share = shutil.disk_usage(tmp_path).free / 10
        assert most_nbytes(path, 10**18) == pytest.approx(share, rel=0.05)
        assert most_nbytes(path, None) == pytest.approx(min(MOST_NBYTES, share), rel=0.05)

    def test_what_is_taken_already_counts_as_free(
        self, database: PrefixDatabase, prefixes_path: Path
    ) -> None:
        database.put_page(page_of("page", nbytes=300 * MB // 10))
        taken = taken_nbytes(prefixes_path)
        assert taken >= 30 * MB
        free = shutil.disk_usage(prefixes_path.parent).free
        assert most_nbytes(prefixes_path, 10**18) == pytest.approx((free + taken) / 10, rel=0.05)


class TestDeletion:
    def test_what_only_this_conversation_used_goes_and_what_others_use_stays(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path
    ) -> None:
        put(database, chain_of("shared", 3, conversation_id=1))
        put(database, chain_of("first's", 20, conversation_id=1, behind="shared 2"))
        put(database, chain_of("second's", 2, conversation_id=2, behind="shared 2"))
        database.put_sequence(sequence_of(1, manifest=b"the manifest of the first"))
        database.put_sequence(sequence_of(2, manifest=b"the manifest of the second"))
        housekeeping.delete(1)
        assert housekeeping.give_back()
        assert len(database.find_pages(keys_of("shared", 3) + keys_of("second's", 2))) == 5
        assert database.find_sequence(1, MODEL) is None
        assert database.find_sequence(2, MODEL) is not None
        assert [entry.conversation_id for entry in housekeeping.entries()] == [2]
        content = content_of(prefixes_path)
        for number in range(20):
            blob = blob_of(f"first's {number}")
            assert not any(blob[at : at + 32] in content for at in range(0, len(blob) - 32, 256))
        assert b"the manifest of the first" not in content
        assert b"the manifest of the second" in content
        assert_whole(prefixes_path)

    @pytest.mark.parametrize("seed", range(4))
    def test_no_remains_are_left_of_anything_after_much_coming_and_going(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path, seed: int
    ) -> None:
        """Small rows are what SQLite copies to and fro."""
        chance = random.Random(seed)
        words: dict[int, set[bytes]] = {}
        gone: set[bytes] = set()
        for number in range(300):
            conversation_id = chance.randrange(1, 41)
            word = chance.randbytes(16)
            content = word * (chance.choice([48, 300, 1000, 3000, 8000, 16_384, 40_000]) // 16)
            if chance.random() < 0.2:
                gone |= words.pop(conversation_id, set())
                housekeeping.delete(conversation_id)
            elif chance.random() < 0.5:
                database.put_page(replace(page_of(f"page {number}", conversation_id), blob=content))
                words.setdefault(conversation_id, set()).add(word)
            else:
                database.put_sequence(sequence_of(conversation_id, manifest=content))
                words.setdefault(conversation_id, set()).add(word)
        kept = {conversation_id for conversation_id in words if conversation_id % 2}
        gone |= {word for owner, those in words.items() if owner not in kept for word in those}
        housekeeping.keep_only(kept)
        assert housekeeping.give_back()
        content = content_of(prefixes_path)
        assert not any(word in content for word in gone)
        for entry in housekeeping.entries():
            found = database.find_sequence(entry.conversation_id, MODEL)
            assert found is None or bytes(found.manifest[:16]) in content
        assert_whole(prefixes_path)

    def test_the_space_goes_back_to_the_disk(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path
    ) -> None:
        empty = taken_nbytes(prefixes_path)
        put(database, chain_of("deleted", 40, conversation_id=1, nbytes=100_000))
        put(database, chain_of("kept", 40, conversation_id=2, nbytes=100_000))
        housekeeping.delete(1)
        with database.read() as db:
            assert db.execute("PRAGMA freelist_count").fetchone()[0] == 0
        assert housekeeping.give_back()
        assert 4 * MB < taken_nbytes(prefixes_path) < 5.5 * MB
        assert [database.read_page(page.key) for page in chain_of("kept", 40)] == [
            blob_of(f"kept {number}", 100_000) for number in range(40)
        ]
        housekeeping.delete(2)
        assert housekeeping.give_back()
        assert taken_nbytes(prefixes_path) <= empty + MB // 10
        assert_whole(prefixes_path)

    def test_a_reader_keeps_words_in_the_log_only_until_it_has_read(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path
    ) -> None:
        put(database, chain_of("text", 3))
        with opened(prefixes_path) as other:
            with other.read() as db:
                assert db.table("pages").count == 3
                housekeeping.delete(1)
                assert not housekeeping.give_back()
            assert housekeeping.give_back()
            assert b"the words of text" not in content_of(prefixes_path)

    def test_it_goes_in_steps_between_which_others_may_write(
        self, database: PrefixDatabase, housekeeping: Housekeeping
    ) -> None:
        put(database, chain_of("text", 40, nbytes=100))
        statements: list[str] = []
        with database.read() as db:
            db.conn.set_trace_callback(statements.append)
        housekeeping.delete(1)
        assert statements.count("BEGIN IMMEDIATE") >= 10
        assert housekeeping.num_pages() == 0

    def test_what_a_killed_process_has_left_goes_with_the_next_call(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path
    ) -> None:
        put(database, chain_of("text", 3))
        with database.write() as db:
            db.execute("DELETE FROM pages WHERE key = ?", (key_of("text 2"),))
        database.close()
        with opened(prefixes_path) as again:
            Housekeeping(again).keep_only([])
            assert Housekeeping(again).give_back()
            assert b"the words of text" not in content_of(prefixes_path)

    def test_all_goes_of_conversations_that_are_gone_and_what_is_nobodys_stays(
        self, database: PrefixDatabase, housekeeping: Housekeeping
    ) -> None:
        for conversation_id in (0, 1, 2, 3):
            put(database, [page_of(f"page {conversation_id}", conversation_id)])
        database.put_sequence(sequence_of(3))
        database.put_sequence(sequence_of(4))
        database.pin(3, True)
        database.pin(5, True)
        assert housekeeping.keep_only({2}) == 4
        assert {entry.conversation_id for entry in housekeeping.entries()} == {0, 2}
        put(database, [page_of("page 3", 3)])
        assert not any(entry.is_pinned for entry in housekeeping.entries())

    def test_space_is_not_given_back_while_another_process_writes(
        self, database: PrefixDatabase, housekeeping: Housekeeping, prefixes_path: Path
    ) -> None:
        put(database, chain_of("text", 3))
        with writing_elsewhere(prefixes_path):
            assert not housekeeping.empty_log()
        assert housekeeping.empty_log()


def test_entries_tell_what_is_kept_by_conversation_the_last_used_first(
    database: PrefixDatabase, housekeeping: Housekeeping, clock: Clock
) -> None:
    put(database, chain_of("shared", 2, conversation_id=1, nbytes=1000))
    clock.now_s += 10
    put(database, chain_of("own", 3, conversation_id=2, behind="shared 1", nbytes=100))
    database.put_sequence(sequence_of(2, *(f"own {n}" for n in range(3)), manifest=b"x" * 50))
    database.pin(1, True)
    second, first = housekeeping.entries()
    assert (second.conversation_id, second.num_pages, second.nbytes) == (2, 5, 2350)
    assert (second.shared_nbytes, second.num_tokens, second.is_pinned) == (2000, 48, False)
    assert (first.conversation_id, first.num_pages, first.nbytes) == (1, 2, 2000)
    assert (first.shared_nbytes, first.num_tokens, first.is_pinned) == (2000, 0, True)
    assert first.last_used.timestamp() == clock.now_s - 10
    assert second.last_used.timestamp() == clock.now_s
    database.pin(1, False)
    assert not any(entry.is_pinned for entry in housekeeping.entries())
