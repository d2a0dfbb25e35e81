from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from app.documents.containment import EXIT_OUT_OF_MEMORY, EXIT_UNREAD
from app.documents.limits import TIME_LIMIT_S

LONGEST_WAIT_S = 60


@contextlib.contextmanager
def start(program: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    lines = f"from app.documents import containment\nimport resource, sys, time\n{program}"
    with subprocess.Popen([sys.executable, "-c", lines], stdout=stdout) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_process_that_needs_too_much_memory_ends() -> None:
    with start(
        "containment.RESIDENT_NBYTES = 100_000_000\n"
        "containment.contain_this_process()\n"
        "data = bytearray(200_000_000)\n"
        "while True: time.sleep(1)"
    ) as process:
        assert process.wait(LONGEST_WAIT_S) == EXIT_OUT_OF_MEMORY


def test_a_process_ends_when_nobody_reads_it() -> None:
    with start("containment.contain_this_process()\nprint('up', flush=True)\nwhile True: pass") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.stdout.close()
        assert process.wait(LONGEST_WAIT_S) == EXIT_UNREAD


def test_a_process_that_writes_to_a_file_goes_on() -> None:
    with tempfile.TemporaryFile() as file:
        program = (
            "seen = []\n"
            "containment._WATCH_INTERVAL_S = 0.001\n"
            "containment._peak_resident_nbytes = lambda: len(seen.append(1) or seen)\n"
            "containment.contain_this_process()\n"
            "while len(seen) < 5: time.sleep(0.001)\n"
            "print('done')"
        )
        with start(program, stdout=file.fileno()) as process:
            assert process.wait(LONGEST_WAIT_S) == 0
        file.seek(0)
        assert file.read() == b"done\n"


def test_processor_time_is_bounded_and_lower_bounds_are_kept() -> None:
    with start(
        "resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))\n"
        "containment.contain_this_process()\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU)[0], resource.getrlimit(resource.RLIMIT_AS)[0])"
    ) as process:
        output, _ = process.communicate()
    assert output.split() == [b"%d" % TIME_LIMIT_S, b"3000000000"]
    assert resource.getrlimit(resource.RLIMIT_CPU)[0] != TIME_LIMIT_S  # not of this process
