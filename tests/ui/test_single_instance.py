from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.paths import AppPaths
from ui.single_instance import Claim, DataFolderError, SingleInstance

SCRIPT = """
import json, sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer
from ui.single_instance import Claim, SingleInstance

app = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
claim = instance.claim([Path(name) for name in sys.argv[2:]])
print(claim.name, flush=True)
if claim is Claim.FIRST:
    def tell(files):
        print(json.dumps([str(file) for file in files]), flush=True)
    instance.activated.connect(tell)
    sys.exit(app.exec())
"""


def _fill_the_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


class Starter:
    """Starts real processes on one data folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, *files: Path, full_disk: bool = False) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(self.home), *map(str, files)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_fill_the_disk if full_disk else None,
            cwd=Path(__file__).parents[2],
        )
        self.processes.append(process)
        return process


@pytest.fixture
def starter(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path / "data")
    yield starter
    for process in starter.processes:
        process.kill()
        process.wait()
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_start_hands_its_files_over_and_ends(starter: Starter, tmp_path: Path) -> None:
    first = starter.start()
    assert line(first) == "FIRST"
    file = tmp_path / "a paper — 论文.pdf"
    second = starter.start(file)
    assert line(second) == "PASSED_ON"
    assert second.wait(10) == 0
    assert json.loads(line(first)) == [str(file)]


def test_a_second_start_without_files_still_raises_the_window(starter: Starter) -> None:
    first = starter.start()
    assert line(first) == "FIRST"
    assert line(starter.start()) == "PASSED_ON"
    assert json.loads(line(first)) == []


def test_what_a_killed_process_left_behind_is_taken_over(starter: Starter) -> None:
    first = starter.start()
    assert line(first) == "FIRST"
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second = starter.start()
    assert line(second) == "FIRST"
    assert line(starter.start()) == "PASSED_ON"


def test_what_a_killed_process_left_behind_on_a_full_disk_is_not_mistaken_for_a_running_program(
    starter: Starter,
) -> None:
    first = starter.start()
    assert line(first) == "FIRST"
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    lock = AppPaths(starter.home).window_lock
    left = lock.read_bytes()
    second = starter.start(full_disk=True)
    assert second.wait(30) != 0
    assert second.stderr is not None
    assert str(DataFolderError(starter.home)) in second.stderr.read()
    assert lock.read_bytes() in (left, b"")


def test_another_data_folder_is_another_instance(starter: Starter, tmp_path: Path) -> None:
    assert line(starter.start()) == "FIRST"
    other = Starter(tmp_path / "other")
    process = other.start()
    starter.processes.append(process)
    assert line(process) == "FIRST"


def test_nonsense_on_the_socket_is_ignored(qtbot: QtBot, tmp_path: Path) -> None:
    from PySide6.QtNetwork import QLocalSocket

    instance = SingleInstance(tmp_path)
    assert instance.claim([]) is Claim.FIRST
    received: list[object] = []
    instance.activated.connect(received.append)
    socket = QLocalSocket()
    socket.connectToServer(instance._name)
    assert socket.waitForConnected(1000)
    socket.write(b"\xff not json\n")
    socket.flush()
    qtbot.waitUntil(lambda: socket.state() is QLocalSocket.LocalSocketState.UnconnectedState)
    assert received == []
    instance.release()


def test_a_folder_that_cannot_be_made_is_named_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    home = tmp_path / "file" / "data"
    with pytest.raises(DataFolderError, match=str(home)):
        SingleInstance(home)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that not even root can write")
def test_a_folder_that_takes_no_file_is_not_mistaken_for_a_running_program() -> None:
    with pytest.raises(DataFolderError, match="/proc/self"):
        SingleInstance(Path("/proc/self")).claim([])
