"""The service of stored pages while the file or the disk is in trouble: each by real means."""

from __future__ import annotations

import resource
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import filelock
import pytest

from app.store import connection
from app.store.errors import StoreLockedError
from app.store.prefixes import recovery
from app.store.prefixes.counts import PrefixCounts
from app.store.prefixes.database import PrefixDatabase
from app.store.prefixes.own_database import OwnDatabase
from app.store.prefixes.problems import Problems
from app.store.prefixes.service import PrefixService
from engine.prefixes.records import SaveMode
from tests.app.store.prefixes.conftest import ServiceMaker
from tests.app.store.prefixes.stored_files import (
    assert_whole,
    holds_words_of,
    locked_elsewhere,
    writing_elsewhere,
)
from tests.app.store.prefixes.stored_texts import MODEL, PAGE_NBYTES, blob_of, key_of, page_of, sequence_of
from tests.app.store.prefixes.test_service import FLUSH_S, open_files, put_all


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives way here: waiting for the lock is of no use."""
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)


@contextmanager
def full_disk(path: Path, room_nbytes: int) -> Iterator[None]:
    """No file grows by more than this, as with a quota; the operating system says so itself."""
    most = max(file.stat().st_size for file in path.parent.iterdir()) + room_nbytes
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, handler)


def assert_goes_on(service: PrefixService) -> None:
    """Keep and find a page, as if nothing had been."""
    put_all(service, 77, "after all")
    assert service.read_page(key_of("after all")) == blob_of("after all")
    assert service.find_sequence(77, MODEL) is not None
    assert service.figures().problem is None


def test_a_full_disk_ends_a_write_is_told_once_and_forgotten_when_there_is_room(
    service: PrefixService, prefixes_path: Path, told: list[str]
) -> None:
    put_all(service, 1, "before")
    losses = service.num_losses
    with full_disk(prefixes_path, PAGE_NBYTES):
        for number in range(20):
            service.put_page(page_of(f"too much {number}", conversation_id=2))
            assert service.flush(FLUSH_S)
        figures = service.figures()
        assert figures.num_pages < 20
        assert figures.problem == told[0]
        assert service.read_page(key_of("before")) == blob_of("before")
    assert len(told) == 1
    assert "full" in told[0]
    assert service.num_losses > losses
    assert_goes_on(service)
    service.close()
    assert_whole(prefixes_path)


def test_nothing_is_tried_for_a_while_after_the_disk_was_full(
    make_service: ServiceMaker, prefixes_path: Path
) -> None:
    service = make_service(pause_s=1e6)
    put_all(service, 1, "before")
    with full_disk(prefixes_path, PAGE_NBYTES):
        for number in range(20):
            service.put_page(page_of(f"too much {number}"))
        assert service.flush(FLUSH_S)
    assert not service.has_room
    assert not service.wait_for_room(FLUSH_S)
    assert not service.put_page(page_of("after"))
    assert service.figures().waiting_nbytes == 0
    assert service.read_page(key_of("before")) == blob_of("before")


def test_words_are_deleted_on_a_full_disk_as_soon_as_that_can_be(
    service: PrefixService, prefixes_path: Path
) -> None:
    put_all(service, 1, *(f"gone {number}" for number in range(20)))
    put_all(service, 2, "kept")
    with full_disk(prefixes_path, 0):
        service.delete(1)
        service.flush(0.5)
    assert service.flush(FLUSH_S)
    assert not holds_words_of(prefixes_path, "gone 3")
    assert service.read_page(key_of("kept")) == blob_of("kept")


def test_a_file_that_another_program_has_locked_gives_nothing_and_is_left_alone(
    make_service: ServiceMaker, prefixes_path: Path, told: list[str]
) -> None:
    former = make_service()
    put_all(former, 1, "page")
    former.close()
    service = make_service()
    with locked_elsewhere(prefixes_path):
        assert service.find_pages([key_of("page")]) == ()
        assert service.read_page(key_of("page")) is None
        assert service.find_sequence(1, MODEL) is None
        assert service.entries() == ()
        service.put_page(page_of("more"))
        assert service.flush(FLUSH_S)
        assert service.figures().problem == told[0]
        service.delete(1)
        assert not service.flush(0.2)
    assert len(told) == 1
    assert "Another program" in told[0]
    assert service.flush(FLUSH_S)
    assert not holds_words_of(prefixes_path, "page")
    assert_goes_on(service)


def test_the_window_does_not_wait_for_another_process_that_writes(
    service: PrefixService, prefixes_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", FLUSH_S)
    put_all(service, 1, "page")
    with writing_elsewhere(prefixes_path):
        service.put_page(page_of("waiting"))
        assert service.figures().num_pages == 1
        assert len(service.entries()) == 1
        service.pin(1, True)
        service.delete(1)
    assert service.flush(FLUSH_S)


def test_a_file_of_a_newer_version_is_left_as_it_is(
    make_service: ServiceMaker, prefixes_path: Path, told: list[str]
) -> None:
    former = make_service()
    put_all(former, 1, "page")
    former.close()
    with closing(sqlite3.connect(prefixes_path)) as conn, conn:
        conn.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "VALUES ('prefixes', '999_newer', '2030-01-01')"
        )
    before = prefixes_path.read_bytes()
    service = make_service(pause_s=1e6)
    assert service.find_pages([key_of("page")]) == ()
    service.put_page(page_of("more"))
    assert service.flush(FLUSH_S)
    service.delete(1)
    flushed: list[bool] = []
    waits = threading.Thread(target=lambda: flushed.append(service.flush(10 * FLUSH_S)))
    waits.start()
    waits.join(FLUSH_S)
    assert flushed == [False]  # nobody waits for what cannot be
    service.close()
    (sentence,) = told
    assert "newer version" in sentence
    assert prefixes_path.read_bytes() == before


@pytest.mark.parametrize("start", [0, 20_000])
def test_a_damaged_file_is_begun_anew_at_once_and_that_is_told(
    make_service: ServiceMaker, prefixes_path: Path, told: list[str], start: int
) -> None:
    former = make_service()
    put_all(former, 1, *map(str, range(30)))
    former.close()
    content = bytearray(prefixes_path.read_bytes())
    content[start : start + 100_000] = b"\xa5" * 100_000
    prefixes_path.write_bytes(content)
    service = make_service()
    for number in range(30):
        assert service.read_page(key_of(str(number))) in (None, blob_of(str(number)))
    assert_goes_on(service)
    assert len(told) == 1
    assert service.figures().damaged == 1
    service.close()
    assert_whole(prefixes_path)


def test_a_file_that_is_damaged_while_it_is_open_is_begun_anew(
    service: PrefixService, prefixes_path: Path, told: list[str]
) -> None:
    put_all(service, 1, *map(str, range(30)))
    service.read_page(key_of("0"))
    losses = service.num_losses
    with closing(sqlite3.connect(prefixes_path)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with prefixes_path.open("r+b") as file:
        file.write(b"\xa5" * 400_000)
    for number in range(30):
        assert service.read_page(key_of(str(number))) in (None, blob_of(str(number)))
    for number in range(30):
        service.put_page(page_of(str(number)))
    assert service.flush(FLUSH_S)
    assert_goes_on(service)
    assert service.num_losses > losses
    assert len(told) == 1
    assert service.figures().damaged >= 1


def test_a_file_that_is_deleted_while_it_is_open_is_begun_anew_without_a_word(
    service: PrefixService, prefixes_path: Path, told: list[str]
) -> None:
    put_all(service, 1, "before")
    service.read_page(key_of("before"))
    losses = service.num_losses
    for file in prefixes_path.parent.iterdir():
        file.unlink()
    assert service.read_page(key_of("before")) is None
    assert_goes_on(service)
    assert service.num_losses > losses
    assert told == []


def test_a_change_in_a_file_that_is_cleared_meanwhile_is_made_again_in_the_new_one(
    prefixes_path: Path, told: list[str]
) -> None:
    counts = PrefixCounts()
    own = OwnDatabase(prefixes_path, Problems(told.append, 0), counts)
    cleared: list[bool] = []

    def change(database: PrefixDatabase) -> None:
        with database.write() as db:
            if not cleared:
                recovery.clear(PrefixDatabase.open(prefixes_path))
                cleared.append(True)
            db.execute("INSERT INTO pins VALUES (7)")

    own.use(change)
    with own.use(lambda database: database).read() as db:
        assert [tuple(row) for row in db.execute("SELECT * FROM pins")] == [(7,)]
    own.close()
    assert (counts.damaged, counts.losses, told) == (0, 0, [])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux shows them")
def test_a_file_that_cannot_be_cleared_for_now_does_not_stay_open(
    prefixes_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "BUSY_TIMEOUT_S", 0.05)
    own = OwnDatabase(prefixes_path, Problems(told.append, 0), PrefixCounts())
    own.use(lambda database: None)
    with filelock.FileLock(f"{prefixes_path}.lock"), pytest.raises(StoreLockedError):
        own.clear()
    own.close()
    assert not any(prefixes_path.name in str(file.readlink()) for file in open_files())


def test_a_database_of_another_program_is_put_aside_whole(
    service: PrefixService, prefixes_path: Path, told: list[str]
) -> None:
    prefixes_path.parent.mkdir()
    with closing(sqlite3.connect(prefixes_path)) as conn, conn:
        conn.execute("CREATE TABLE recipes (name TEXT)")
        conn.execute("INSERT INTO recipes VALUES ('soup')")
    assert service.find_pages([key_of("page")]) == ()
    assert_goes_on(service)
    assert len(told) == 1
    (aside,) = prefixes_path.parent.glob(f"{prefixes_path.name}.foreign-*")
    with closing(sqlite3.connect(aside)) as conn:
        assert conn.execute("SELECT name FROM recipes").fetchall() == [("soup",)]


def test_a_folder_that_cannot_be_made_is_told_and_nothing_fails(tmp_path: Path) -> None:
    told: list[str] = []
    blocked = tmp_path / "a file"
    blocked.touch()
    service = PrefixService(blocked / "prefixes.db", on_problem=told.append, pause_s=0)
    service.put_page(page_of("page"))
    assert service.flush(FLUSH_S)
    service.put_sequence(sequence_of(1, "page"))
    assert service.flush(FLUSH_S)
    assert service.find_pages([key_of("page")]) == ()
    assert service.entries() == ()
    figures = service.figures()
    assert (figures.num_pages, figures.saved) == (0, 0)
    assert len(told) == 1
    assert service.mode is SaveMode.EVERYTHING
    service.close()


def test_two_processes_keep_the_same_and_different_pages_at_once(
    make_service: ServiceMaker, prefixes_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", FLUSH_S)
    services = [make_service(), make_service()]
    for number in range(25):
        for conversation_id, service in enumerate(services, 1):
            service.put_page(page_of(f"shared {number}", conversation_id))
            service.put_page(page_of(f"{conversation_id} {number}", conversation_id))
    for conversation_id, service in enumerate(services, 1):
        service.put_sequence(sequence_of(conversation_id, *(f"shared {number}" for number in range(25))))
    assert all(service.flush(FLUSH_S) for service in services)
    names = [f"{kind} {number}" for kind in ("shared", 1, 2) for number in range(25)]
    for service in services:
        assert all(service.read_page(key_of(name)) == blob_of(name) for name in names)
    assert sum(service.figures().saved for service in services) == 75
    services[0].delete(1)
    assert services[0].flush(FLUSH_S)
    assert services[1].figures().num_pages == 50
    assert not holds_words_of(prefixes_path, "1 7")
    for service in services:
        service.close()
    assert_whole(prefixes_path)
