from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.store.prefixes import digests as digests_module
from app.store.prefixes.digests import ModelDigests
from engine.prefixes.digest import model_digest


class Memory:
    """Digests as the store remembers them; `found` is set with each new one."""

    def __init__(self) -> None:
        self.rows: dict[tuple[Path, str], str] = {}
        self.threads: list[str] = []
        self.found = threading.Event()

    def remembered(self, path: Path, marks: str) -> str | None:
        return self.rows.get((path, marks))

    def remember(self, path: Path, marks: str, digest: str) -> None:
        self.rows[path, marks] = digest
        self.threads.append(threading.current_thread().name)
        self.found.set()

    def digests(self) -> ModelDigests:
        return ModelDigests(self.remembered, self.remember)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"weights" * 1000)
    return path


def until_known(digests: ModelDigests, path: Path) -> str:
    """Return the digest as soon as it is known; a hang is the test's failure."""
    while (digest := digests.digest(path)) is None:
        os.sched_yield()
    return digest


def test_a_digest_is_unknown_at_first_and_found_out_on_another_thread(model: Path) -> None:
    memory = Memory()
    digests = memory.digests()
    assert digests.digest(model) is None
    assert until_known(digests, model) == model_digest(model)
    assert memory.threads == ["model digests"]
    digests.close()


def test_a_model_is_read_once_however_often_it_is_asked_for(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(path: Path, check: Callable[[], None]) -> str:
        read.append(path)
        return model_digest(path, check)

    monkeypatch.setattr(digests_module, "model_digest", counted)
    digests = Memory().digests()
    for _ in range(3):
        until_known(digests, model)
    digests.close()
    assert read == [model]


def test_what_an_earlier_process_found_out_is_not_read_again(model: Path) -> None:
    memory = Memory()
    first = memory.digests()
    known = until_known(first, model)
    first.close()
    assert memory.digests().digest(model) == known


def test_a_file_that_is_changed_or_put_in_the_place_of_another_is_found_out_anew(model: Path) -> None:
    digests = Memory().digests()
    before = until_known(digests, model)
    other = model.with_name("other")
    other.write_bytes(b"WEIGHTS" * 1000)
    status = model.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(model)
    # The same name, size and time: only the inode is another one.
    assert digests.digest(model) is None
    after = until_known(digests, model)
    assert before != after == model_digest(model)
    digests.close()


def test_a_model_that_changes_while_it_is_read_has_no_digest(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = threading.Event()

    def changing(path: Path, check: Callable[[], None]) -> str:
        path.write_bytes(b"other weights")
        done.set()
        return hashlib.blake2b(b"of neither").hexdigest()

    monkeypatch.setattr(digests_module, "model_digest", changing)
    memory = Memory()
    digests = memory.digests()
    assert digests.digest(model) is None
    done.wait()
    digests.close()
    assert memory.rows == {}


def test_closing_stops_in_the_middle_of_a_model(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()

    def endless(path: Path, check: Callable[[], None]) -> str:
        begun.set()
        while True:
            check()

    monkeypatch.setattr(digests_module, "model_digest", endless)
    digests = Memory().digests()
    digests.digest(model)
    begun.wait()
    digests.close()
    assert digests.digest(model) is None


def test_a_model_that_is_not_there_or_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    digests = Memory().digests()
    assert digests.digest(tmp_path / "missing.gguf") is None
    empty = tmp_path / "empty folder"
    empty.mkdir()
    assert digests.digest(empty) is None
    digests.close()
