"""Processes that are killed outright in the middle of writing and deleting, and processes side by side."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from app.store.prefixes.records import PrefixSettings
from app.store.prefixes.service import PrefixService
from tests.app.store.prefixes.prefix_process import FLUSH_S, names_of
from tests.app.store.prefixes.stored_files import assert_whole, content_of
from tests.app.store.prefixes.stored_texts import MODEL, blob_of, key_of

ROOT = Path(__file__).parents[4]
KILLS = 50
IDS_OF_A_RUN = 1000


class Log:
    """What processes have said that they did, as sets of conversations."""

    def __init__(self) -> None:
        self.done: dict[str, set[int]] = {"put": set(), "kept": set(), "deleting": set()}

    def add(self, line: str) -> None:
        if line.endswith("\n"):
            what, conversation_id = line.split()
            self.done[what].add(int(conversation_id))

    @property
    def left(self) -> set[int]:
        """The conversations that are there as far as the window knows."""
        return self.done["put"] - self.done["deleting"]


def start(path: Path, first_id: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.app.store.prefixes.prefix_process", str(path), str(first_id)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_after(process: subprocess.Popen[str], num_lines: int, log: Log) -> None:
    with process:
        assert process.stdout is not None
        for _ in range(num_lines):
            log.add(process.stdout.readline())
        process.kill()
        for line in process.stdout:
            log.add(line)


def check(path: Path, log: Log) -> None:
    """Start as the window does, and hold all that is found against what was put."""
    told: list[str] = []
    service = PrefixService(path, PrefixSettings(), told.append)
    service.keep_only(log.left)
    assert service.flush(FLUSH_S)
    for conversation_id in log.left:
        names = names_of(conversation_id)
        for name in names:
            assert service.read_page(key_of(name)) in (None, blob_of(name))
        sequence = service.find_sequence(conversation_id, MODEL)
        assert sequence is not None or conversation_id not in log.done["kept"]
        if sequence is not None:
            # A manifest comes after its pages: those that it names are there.
            assert sequence.manifest == blob_of(f"manifest {conversation_id}", 5000)
            assert len(service.find_pages(sequence.keys)) == len(names)
    service.close()
    assert told == []
    assert_whole(path)
    content = content_of(path)
    for conversation_id in log.done["deleting"]:
        for name in names_of(conversation_id)[1:]:
            assert f"the words of {name}. ".encode() not in content


@pytest.mark.slow
def test_a_process_that_is_killed_fifty_times_at_any_moment_leaves_whole_pages_and_no_deleted_word(
    tmp_path: Path,
) -> None:
    random.seed(6)
    path = tmp_path / "prefixes.db"
    log = Log()
    for run in range(1, KILLS + 1):
        kill_after(start(path, run * IDS_OF_A_RUN), random.randint(1, 15), log)
        check(path, log)
        # Else there is more and more to look through.
        if run % 10 == 0:
            path.unlink()
            log = Log()


@pytest.mark.slow
def test_two_processes_that_write_and_delete_at_once_and_are_killed_leave_a_whole_file(
    tmp_path: Path,
) -> None:
    random.seed(7)
    path = tmp_path / "prefixes.db"
    log = Log()
    for run in range(1, 6):
        # The beginnings of their conversations are the same pages.
        both = [start(path, run * IDS_OF_A_RUN), start(path, run * IDS_OF_A_RUN + 500)]
        for process in both:
            kill_after(process, random.randint(10, 60), log)
        check(path, log)
