"""What is put into the database of pages is found again, by whoever may find it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.housekeeping import Housekeeping
from engine.prefixes.records import StoredPage, StoredSequence
from tests.app.store.prefixes.databases import Clock, chain_of, keys_of, opened, put
from tests.app.store.prefixes.stored_texts import MODEL, blob_of, key_of, page_of, sequence_of


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(prefixes_path: Path) -> Path:
    return prefixes_path


@pytest.fixture
def database(path: Path, clock: Clock) -> Iterator[PrefixDatabase]:
    with opened(path, clock) as database:
        yield database


def last_use(database: PrefixDatabase, conversation_id: int) -> float:
    (entry,) = (e for e in Housekeeping(database).entries() if e.conversation_id == conversation_id)
    return entry.last_used.timestamp()


class TestPages:
    def test_a_page_is_read_as_it_was_written_also_by_another_connection(
        self, database: PrefixDatabase, path: Path
    ) -> None:
        page = replace(page_of("page"), blob=bytearray(blob_of("page", 1_600_000)))
        database.put_page(page)
        with opened(path) as other:
            assert other.read_page(page.key) == blob_of("page", 1_600_000)
        assert database.read_page(key_of("another page")) is None

    @settings(max_examples=40)
    @given(stored=st.sets(st.integers(0, 7)), asked=st.lists(st.integers(0, 7), unique=True))
    def test_the_longest_beginning_that_is_stored_whole_is_found(
        self, tmp_path_factory: pytest.TempPathFactory, stored: set[int], asked: list[int]
    ) -> None:
        with opened(tmp_path_factory.mktemp("found") / "prefixes.db") as database:
            put(database, [page_of(str(number), nbytes=100 + number) for number in stored])
            expected = []
            for number in asked:
                if number not in stored:
                    break
                expected.append(StoredPage(key_of(str(number)), 100 + number, 16, 4.0))
            assert list(database.find_pages([key_of(str(number)) for number in asked])) == expected

    def test_a_chain_of_thousands_is_found_whole(self, database: PrefixDatabase) -> None:
        put(database, chain_of("long", 2000, nbytes=10))
        assert [page.key for page in database.find_pages(keys_of("long", 2001))] == keys_of("long", 2000)
        assert len(database.stored_bits(keys_of("long", 2001))) == 2000

    def test_bits_are_told_of_those_that_are_stored(self, database: PrefixDatabase) -> None:
        put(database, [page_of("four", bits=4.25), page_of("six", bits=6.5)])
        wanted = {key_of(name) for name in ("six", "missing", "four")}
        assert database.stored_bits(wanted) == {key_of("four"): 4.25, key_of("six"): 6.5}
        assert database.stored_bits([]) == {}

    def test_a_page_takes_the_place_of_its_conversations_own_and_no_equal_one_that_of_another(
        self, database: PrefixDatabase
    ) -> None:
        exact = page_of("page", bits=16.0, nbytes=90_000)
        assert database.put_page(exact) == 2 * 90_000
        again = replace(exact, blob=b"read again")
        assert database.put_page(again) == 2 * len(again.blob)
        assert database.read_page(exact.key) == again.blob
        shared = page_of("shared", bits=16.0)
        assert database.put_page(shared)
        assert database.put_page(replace(shared, conversation_id=2, blob=b"never")) == 0
        assert database.read_page(shared.key) == shared.blob
        lowered = page_of("page", bits=4.5, nbytes=30_000)
        assert database.put_page(lowered) == 2 * 30_000
        assert database.read_page(exact.key) == lowered.blob
        assert database.find_pages([exact.key]) == (StoredPage(exact.key, 30_000, 16, 4.5),)

    def test_a_dropped_page_is_gone_and_the_others_stay(self, database: PrefixDatabase) -> None:
        put(database, chain_of("text", 3))
        assert database.drop_page(key_of("text 1"))
        assert not database.drop_page(key_of("text 1"))
        assert len(database.find_pages(keys_of("text", 3))) == 1
        assert database.read_page(key_of("text 2")) is not None


class TestSequences:
    def test_a_sequence_is_found_by_conversation_and_model(self, database: PrefixDatabase) -> None:
        put(database, chain_of("text", 2))
        sequence = StoredSequence(1, MODEL, tuple(keys_of("text", 2)), b"the manifest", 40)
        database.put_sequence(sequence)
        found = database.find_sequence(1, MODEL)
        assert found is not None
        assert (found.conversation_id, found.model) == (1, MODEL)
        assert (found.keys, found.manifest, found.num_tokens) == (sequence.keys, b"the manifest", 40)
        assert database.find_sequence(2, MODEL) is None
        assert database.find_sequence(1, "another model") is None

    def test_the_last_manifest_counts_and_an_empty_one_leaves_it(self, database: PrefixDatabase) -> None:
        for manifest in (b"first", b"second", b""):
            database.put_sequence(sequence_of(1, manifest=manifest))
        found = database.find_sequence(1, MODEL)
        assert found is not None
        assert found.manifest == b"second"

    @pytest.mark.parametrize("conversation_id", [0, -3])
    def test_no_conversation_has_no_manifest(self, database: PrefixDatabase, conversation_id: int) -> None:
        put(database, [page_of("page", conversation_id)])
        assert database.put_sequence(sequence_of(conversation_id, "page")) == 0
        assert database.find_sequence(conversation_id, MODEL) is None
        (entry,) = Housekeeping(database).entries()
        assert entry.conversation_id == 0

    def test_a_dropped_manifest_leaves_its_pages(self, database: PrefixDatabase) -> None:
        put(database, [page_of("page")])
        database.put_sequence(sequence_of(1, "page"))
        assert database.drop_sequence(1, MODEL)
        assert not database.drop_sequence(1, MODEL)
        assert database.find_sequence(1, MODEL) is None
        assert database.read_page(key_of("page")) is not None

    def test_a_conversation_is_of_another_model_only_while_this_one_has_nothing_of_it(
        self, database: PrefixDatabase
    ) -> None:
        assert not database.is_of_other_model(1, MODEL)
        put(database, [replace(page_of("theirs"), model="another model")])
        assert database.is_of_other_model(1, MODEL)
        assert not database.is_of_other_model(1, "another model")
        put(database, [page_of("ours")])
        assert not database.is_of_other_model(1, MODEL)
        database.put_sequence(replace(sequence_of(2), model="another model"))
        assert database.is_of_other_model(2, MODEL)


class TestUse:
    def test_what_was_just_used_is_not_noted_again(self, database: PrefixDatabase, clock: Clock) -> None:
        put(database, chain_of("text", 3))
        begun = clock.now_s
        clock.now_s = begun + 30
        database.touch(keys_of("text", 3))
        assert last_use(database, 1) == begun
        clock.now_s = begun + 90
        database.touch(keys_of("text", 3))
        assert last_use(database, 1) == begun + 90

    def test_a_touch_that_changes_nothing_waits_for_no_writer(
        self, database: PrefixDatabase, path: Path
    ) -> None:
        put(database, chain_of("text", 3))
        with opened(path) as other, other.write():
            database.touch([*keys_of("text", 3), key_of("missing")])

    def test_reading_a_manifest_counts_as_use_of_its_conversation(
        self, database: PrefixDatabase, clock: Clock
    ) -> None:
        database.put_sequence(sequence_of(1))
        clock.now_s += 500
        database.touch_sequence(1, MODEL)
        assert last_use(database, 1) == clock.now_s


class TestFigures:
    def test_what_is_written_counts_twice_and_for_one_day(
        self, database: PrefixDatabase, clock: Clock, path: Path
    ) -> None:
        written = database.put_page(page_of("page", nbytes=50_000))
        with opened(path, clock) as other:
            written += other.put_sequence(sequence_of(1, "page", manifest=b"m" * 1000))
        assert written == 2 * (50_000 + 32 + 1000)
        assert database.written_today() == written
        clock.now_s += 86_400
        assert database.written_today() == 0
        database.put_page(page_of("another", nbytes=7))
        assert database.written_today() == 14

    def test_a_digest_is_remembered_while_the_model_is_the_same(self, database: PrefixDatabase) -> None:
        database.remember_model("/models/a", "print 1", "digest 1")
        assert database.model_digest("/models/a", "print 1") == "digest 1"
        assert database.model_digest("/models/a", "print 2") is None
        database.remember_model("/models/a", "print 2", "digest 2")
        assert database.model_digest("/models/a", "print 1") is None
        assert database.model_digest("/models/a", "print 2") == "digest 2"


def test_what_finds_and_lists_pages_reads_no_blob(database: PrefixDatabase) -> None:
    put(database, chain_of("text", 3))
    statements: list[str] = []
    with database.read() as db:
        db.conn.set_trace_callback(statements.append)
    database.find_pages(keys_of("text", 3))
    database.stored_bits(keys_of("text", 3))
    database.touch(keys_of("text", 3))
    Housekeeping(database).entries()
    assert len(statements) > 4
    assert not [sql for sql in statements if "page_blobs" in sql or "manifests" in sql]
