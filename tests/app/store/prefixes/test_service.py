"""The service of stored pages while all is well with the disk."""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path

import pytest

from app.store.prefixes import writer
from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from engine.prefixes.digest import model_digest
from engine.prefixes.records import SaveMode, StoredPage
from tests.app.store.prefixes.conftest import ServiceMaker
from tests.app.store.prefixes.stored_files import holds_words_of, writing_elsewhere
from tests.app.store.prefixes.stored_texts import (
    MODEL,
    PAGE_NBYTES,
    blob_of,
    key_of,
    page_of,
    sequence_of,
)

FLUSH_S = 60.0


def put_all(service: PrefixService, conversation_id: int, *names: str) -> None:
    """Put a chain of pages and the sequence of them, and wait until they are written."""
    for parent, name in zip(("", *names), names, strict=False):
        assert service.put_page(page_of(name, conversation_id, parent))
    assert service.put_sequence(sequence_of(conversation_id, *names))
    assert service.flush(FLUSH_S)


def test_what_was_put_is_found_by_the_next_process(make_service: ServiceMaker) -> None:
    first = make_service()
    put_all(first, 1, "one", "two")
    assert first.figures().saved == 2
    first.close()

    service = make_service()
    keys = [key_of("one"), key_of("two"), key_of("three")]
    stored = tuple(StoredPage(key, PAGE_NBYTES, 16, 4.0) for key in keys[:2])
    assert service.find_pages(keys) == stored
    assert service.stored_bits([keys[2], keys[1]]) == {keys[1]: 4.0}
    assert [service.read_page(key) for key in keys] == [blob_of("one"), blob_of("two"), None]
    assert service.figures().restored == 2
    sequence = service.find_sequence(1, MODEL)
    assert sequence is not None
    assert (sequence.keys, bytes(sequence.manifest)) == (tuple(keys[:2]), b"a manifest")
    assert service.find_sequence(1, "another model") is None
    assert service.is_of_other_model(1, "another model")
    assert not service.is_of_other_model(1, MODEL)


def test_what_waits_to_be_written_is_found_as_well(service: PrefixService, prefixes_path: Path) -> None:
    put_all(service, 1, "one")
    with writing_elsewhere(prefixes_path):
        service.put_page(page_of("two", parent="one", bits=8.0))
        service.put_page(page_of("three", parent="two"))
        service.put_sequence(sequence_of(2, "one", "two", manifest=b"on its way"))
        assert not service.flush(0)
        found = service.find_pages(list(map(key_of, ("one", "two", "three", "four"))))
        assert [page.bits for page in found] == [4.0, 8.0, 4.0]
        assert service.stored_bits([key_of("two")]) == {key_of("two"): 8.0}
        assert service.read_page(key_of("two")) == blob_of("two")
        sequence = service.find_sequence(2, MODEL)
        assert sequence is not None
        assert sequence.manifest == b"on its way"
        figures = service.figures()
        assert (figures.num_pages, figures.waiting_nbytes) == (1, 2 * PAGE_NBYTES + len(b"on its way"))
        assert [entry.conversation_id for entry in service.entries()] == [1]
    assert service.flush(FLUSH_S)
    assert service.figures().num_pages == 3


def test_nothing_is_kept_and_no_file_made_while_nothing_may_be(
    make_service: ServiceMaker, prefixes_path: Path
) -> None:
    service = make_service(PrefixSettings(SaveMode.NEVER))
    assert service.mode is SaveMode.NEVER
    assert not service.has_room
    assert not service.wait_for_room(FLUSH_S)
    assert not service.put_page(page_of("page"))
    assert not service.put_sequence(sequence_of(1, "page"))
    service.touch([key_of("page")])
    service.delete(1)
    service.keep_only([1])
    service.clear()
    assert service.flush(FLUSH_S)
    assert service.figures().num_pages == 0
    assert service.entries() == ()
    assert not prefixes_path.exists()


@pytest.mark.parametrize("mode", [SaveMode.NEVER, SaveMode.DOCUMENTS])
def test_what_waits_is_dropped_when_less_may_be_kept(
    service: PrefixService, prefixes_path: Path, mode: SaveMode
) -> None:
    put_all(service, 1, "kept")
    losses = service.num_losses
    with writing_elsewhere(prefixes_path):
        service.put_page(page_of("in hand"))
        service.put_page(page_of("waiting", conversation_id=2))
        service.settings = PrefixSettings(mode)
    assert service.flush(FLUSH_S)
    assert service.num_losses > losses
    assert service.stored_bits([key_of("waiting")]) == {}
    assert not holds_words_of(prefixes_path, "waiting")
    assert key_of("kept") in service.stored_bits([key_of("kept")])


class TestDeleting:
    def test_a_conversation_leaves_no_word_and_the_others_stay(
        self, service: PrefixService, prefixes_path: Path
    ) -> None:
        put_all(service, 1, "shared", "gone")
        put_all(service, 2, "shared", "other")
        assert holds_words_of(prefixes_path, "gone")
        service.delete(1)
        assert service.find_sequence(1, MODEL) is None
        assert service.flush(FLUSH_S)
        assert not holds_words_of(prefixes_path, "gone")
        assert holds_words_of(prefixes_path, "shared")
        assert [page.key for page in service.find_pages([key_of("shared"), key_of("other")])] == [
            key_of("shared"),
            key_of("other"),
        ]
        assert [entry.conversation_id for entry in service.entries()] == [2]

    def test_nothing_that_was_put_before_is_written_at_whatever_moment_it_comes(
        self, service: PrefixService, prefixes_path: Path
    ) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)
        try:
            for conversation_id in range(1, 30):
                for number in range(8):
                    service.put_page(page_of(f"{conversation_id} {number}", conversation_id))
                service.put_sequence(sequence_of(conversation_id, f"{conversation_id} 0"))
                # Each time the writer is somewhere else in these, often in the middle of one.
                service.flush(0.001 * (conversation_id % 8))
                service.delete(conversation_id)
        finally:
            sys.setswitchinterval(interval)
        assert service.flush(FLUSH_S)
        assert service.figures().num_pages == 0
        assert b"the words of" not in prefixes_path.read_bytes()

    def test_what_is_put_later_is_refused_until_the_deletion_is_taken_back(
        self, service: PrefixService
    ) -> None:
        put_all(service, 1, "before")
        service.delete(1)
        # No room would be waited for.
        assert service.put_page(page_of("late"))
        assert service.put_sequence(sequence_of(1, "late"))
        assert service.flush(FLUSH_S)
        assert service.figures().num_pages == 0
        losses = service.num_losses
        service.allow(1)
        assert service.num_losses > losses
        put_all(service, 1, "again")
        assert service.find_sequence(1, MODEL) is not None

    def test_it_is_done_when_the_service_is_closed_at_once(
        self, make_service: ServiceMaker, prefixes_path: Path
    ) -> None:
        service = make_service()
        put_all(service, 1, "gone")
        put_all(service, 2, "kept")
        service.delete(1)
        service.close()
        assert not holds_words_of(prefixes_path, "gone")
        assert holds_words_of(prefixes_path, "kept")

    def test_at_the_start_goes_what_belongs_to_no_conversation_any_more(
        self, make_service: ServiceMaker, prefixes_path: Path
    ) -> None:
        former = make_service()
        for conversation_id in (1, 2):
            put_all(former, conversation_id, f"of {conversation_id}")
        put_all(former, 0, "of the terminal")
        former.close()
        service = make_service()
        service.put_page(page_of("of a new one", conversation_id=3))
        service.keep_only([2])
        assert service.flush(FLUSH_S)
        assert {entry.conversation_id for entry in service.entries()} == {0, 2, 3}
        assert not holds_words_of(prefixes_path, "of 1")

    def test_clearing_leaves_no_word_and_what_is_put_next_is_kept(
        self, service: PrefixService, prefixes_path: Path
    ) -> None:
        put_all(service, 1, "one")
        losses = service.num_losses
        with writing_elsewhere(prefixes_path):
            service.put_page(page_of("in hand"))
            service.put_page(page_of("waiting"))
            service.clear()
            service.put_page(page_of("next"))
        assert service.flush(FLUSH_S)
        for name in ("one", "in hand", "waiting"):
            assert not holds_words_of(prefixes_path, name)
            assert service.find_pages([key_of(name)]) == ()
        assert service.num_losses == losses  # or all that is in memory would be put again at once
        assert service.read_page(key_of("next")) == blob_of("next")

    def test_clearing_gives_the_space_back_while_others_have_the_file_open(
        self, service: PrefixService, prefixes_path: Path
    ) -> None:
        put_all(service, 1, *map(str, range(30)))
        assert service.find_pages([key_of("0")])  # the connection for reading stays open
        with prefixes_path.open("rb") as former:
            service.clear()
            assert service.flush(FLUSH_S)
            assert os.fstat(former.fileno()).st_size == 0

    def test_two_processes_clear_one_after_the_other_without_a_problem(
        self, make_service: ServiceMaker, told: list[str], prefixes_path: Path
    ) -> None:
        services = make_service(pause_s=1e6), make_service(pause_s=1e6)
        for service in services:
            put_all(service, 1, "one")
        for service in services:
            service.clear()
            assert service.flush(FLUSH_S)
        assert told == []
        assert service.figures().problem is None
        assert not holds_words_of(prefixes_path, "one")


class TestBounds:
    def test_no_more_is_written_in_a_day_than_the_settings_allow(self, make_service: ServiceMaker) -> None:
        settings = PrefixSettings(most_written_nbytes=6 * PAGE_NBYTES)
        service = make_service(settings)
        names = list(map(str, range(8)))
        for name in names:
            if service.put_page(page_of(name)):
                assert service.flush(FLUSH_S)
        # Each is written twice.
        assert service.figures().saved == 3
        figures = service.figures()
        assert figures.written_today_nbytes == figures.most_written_nbytes == 6 * PAGE_NBYTES
        assert figures.problem is not None
        assert "today" in figures.problem
        assert not service.wait_for_room(FLUSH_S)

        service.settings = PrefixSettings(most_written_nbytes=8 * PAGE_NBYTES)
        assert service.figures().problem is None
        assert service.put_page(page_of("3"))
        assert service.flush(FLUSH_S)

    def test_what_was_written_yesterday_does_not_count_when_midnight_comes_in_the_middle(
        self, make_service: ServiceMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = make_service(PrefixSettings(most_written_nbytes=6 * PAGE_NBYTES))
        put_all(service, 0, "a", "b")
        num_saved = service.figures().saved

        class Calendar(date):
            @classmethod
            def today(cls) -> Calendar:
                return cls(2026, 12, 1 if service._counts.saved == num_saved else 2)

        monkeypatch.setattr(writer, "date", Calendar)
        assert service.put_page(page_of("c"))
        assert service.flush(FLUSH_S)
        assert service.has_room

    def test_what_another_process_wrote_today_counts(self, make_service: ServiceMaker) -> None:
        settings = PrefixSettings(most_written_nbytes=6 * PAGE_NBYTES)
        other = make_service(settings)
        for name in "abc":
            other.put_page(page_of(name))
            assert other.flush(FLUSH_S)
        service = make_service(settings)
        losses = service.num_losses
        service.put_page(page_of("d"))
        assert service.flush(FLUSH_S)
        assert service.figures().saved == 0
        assert service.num_losses > losses
        assert not service.has_room

    def test_what_waits_counts_as_written(self, make_service: ServiceMaker, prefixes_path: Path) -> None:
        service = make_service(PrefixSettings(most_written_nbytes=6 * PAGE_NBYTES))
        put_all(service, 1, "first")
        with writing_elsewhere(prefixes_path):
            assert [service.put_page(page_of(name)) for name in "abcd"] == [True, True, False, False]

    def test_what_was_used_longest_ago_goes_when_the_limit_is_lowered(self, service: PrefixService) -> None:
        for number in range(60):
            service.put_page(page_of(str(number), conversation_id=number + 1))
        assert service.flush(FLUSH_S)
        service.pin(1, True)
        most = 30 * PAGE_NBYTES
        service.settings = PrefixSettings(most_nbytes=most)
        assert service.flush(FLUSH_S)
        figures = service.figures()
        assert figures.nbytes <= figures.most_nbytes == most
        assert figures.num_pages + figures.evicted == 60
        stored = service.stored_bits([key_of(str(number)) for number in range(60)])
        assert key_of("0") in stored
        assert key_of("1") not in stored
        assert key_of("59") in stored
        assert service.entries()[-1].is_pinned

    def test_a_limit_that_not_even_one_page_fits_into_is_told(
        self, make_service: ServiceMaker, told: list[str]
    ) -> None:
        service = make_service(PrefixSettings(most_nbytes=PAGE_NBYTES))
        service.put_page(page_of("page"))
        assert service.flush(FLUSH_S)
        assert service.figures().num_pages == 0
        (sentence,) = told
        assert "Raise the limit" in sentence


class TestDamagedContent:
    def test_a_page_that_was_dropped_is_not_there_at_once_and_put_again_it_is(
        self, service: PrefixService, prefixes_path: Path
    ) -> None:
        put_all(service, 1, "one", "two")
        with writing_elsewhere(prefixes_path):
            service.drop_page(key_of("two"))
            service.drop_sequence(1, MODEL)
            assert service.read_page(key_of("two")) is None
            assert len(service.find_pages([key_of("one"), key_of("two")])) == 1
            assert service.stored_bits([key_of("two")]) == {}
            assert service.find_sequence(1, MODEL) is None
        assert service.figures().damaged == 2
        assert service.put_page(page_of("two", parent="one"))
        assert service.flush(FLUSH_S)
        assert service.read_page(key_of("two")) == blob_of("two")
        assert service.find_sequence(1, MODEL) is None
        put_all(service, 1, "one", "two")
        assert service.find_sequence(1, MODEL) is not None


def test_a_model_is_known_to_the_next_process_without_being_read(
    make_service: ServiceMaker, tmp_path: Path
) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"weights")
    first = make_service()
    while first.model_digest(model) is None:
        assert first.flush(FLUSH_S)
    assert first.flush(FLUSH_S)
    first.close()
    assert make_service().model_digest(model) == model_digest(model)


def test_pins_and_uses_are_noted(service: PrefixService) -> None:
    put_all(service, 1, "one")
    put_all(service, 2, "two")
    assert [(entry.conversation_id, entry.is_pinned) for entry in service.entries()] == [
        (2, False),
        (1, False),
    ]
    service.pin(1, True)
    service.touch([key_of("one")])
    assert service.flush(FLUSH_S)
    (pinned,) = [entry for entry in service.entries() if entry.is_pinned]
    assert (pinned.conversation_id, pinned.num_pages, pinned.num_tokens) == (1, 1, 16)
    service.pin(1, False)
    assert service.flush(FLUSH_S)
    assert not any(entry.is_pinned for entry in service.entries())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux shows them")
def test_nothing_of_it_is_open_once_it_is_closed(make_service: ServiceMaker, prefixes_path: Path) -> None:
    service = make_service()
    put_all(service, 1, "page")
    service.read_page(key_of("page"))
    assert any(prefixes_path.name in str(file.readlink()) for file in open_files())
    service.close()
    assert not any(prefixes_path.name in str(file.readlink()) for file in open_files())
    assert not service.has_room
    assert not service.put_page(page_of("late"))


def open_files() -> list[Path]:
    return [file for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
