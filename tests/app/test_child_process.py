from __future__ import annotations

import json
import sys

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.child_process import ChildProcess, JsonLines
from engine.cancel import CancelToken
from engine.errors import Cancelled


def python(program: str) -> list[str]:
    return [sys.executable, "-c", f"import os, subprocess, sys, time\n{program}"]


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers())), st.data())
def test_objects_arrive_whole_wherever_the_stream_is_cut(
    objects: list[dict[str, object]], data: st.DataObject
) -> None:
    stream = b"".join(json.dumps(item).encode() + b"\n" for item in objects)
    lines, received, start = JsonLines(), [], 0
    while start < len(stream):
        end = data.draw(st.integers(start + 1, len(stream)))
        received += lines.feed(stream[start:end])
        start = end
    assert received == objects


def test_output_errors_and_status_are_those_of_the_process() -> None:
    program = "print(os.environ['WORD']); print('x' * 100_000, 'end', file=sys.stderr); sys.exit(3)"
    with ChildProcess(python(program), {"WORD": "hello"}) as child:
        assert b"".join(child.output(CancelToken())) == b"hello\n"
        assert child.wait(30) == 3
    assert child.errors.endswith("x end\n") and len(child.errors) < 10_000


def test_a_process_is_killed_with_what_it_started() -> None:
    sleeper = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid"
    cancel, pids = CancelToken(), b""
    with (
        pytest.raises(Cancelled),
        ChildProcess(python(f"print(os.getpid(), {sleeper}, flush=True); time.sleep(600)")) as child,
    ):
        for data in child.output(cancel):
            pids += data
            if pids.endswith(b"\n"):
                cancel.cancel()
    started = [psutil.Process(int(pid)) for pid in pids.split() if psutil.pid_exists(int(pid))]
    _, alive = psutil.wait_procs(started, timeout=30)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_process_that_takes_too_long_is_told_from_one_that_ends() -> None:
    with ChildProcess(python("time.sleep(600)")) as child, pytest.raises(TimeoutError):
        list(child.output(CancelToken(), timeout_s=0))


def test_a_process_that_cannot_be_killed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.child_process._END_WAIT_S", 0.1)
    child = ChildProcess(python("time.sleep(600)"))
    with monkeypatch.context() as patch:
        patch.setattr(child, "kill", lambda: None)  # as one is that waits for a network drive
        child.close()
    assert child.wait(0) is None
    child.close()
    assert child.wait(0) is not None
