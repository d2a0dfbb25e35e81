"""OpenBLAS's threads and other programs on the same cores."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from engine.blas_threads import fitting_threads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="MLX brings its own BLAS elsewhere")

WATCH = """
import ctypes, sys, time
from engine.blas import load_blas
report = load_blas()
assert report.loaded, report
library = ctypes.CDLL(report.path)
print(library.openblas_get_num_threads(), flush=True)
sys.stdin.readline()
while library.openblas_get_num_threads() > 1:
    time.sleep(0.05)
print(library.openblas_get_num_threads(), flush=True)
"""


@pytest.mark.parametrize(
    ("most", "cores", "others", "threads"),
    [
        (2, 2, 0.0, 2),
        (2, 2, 0.3, 2),
        (2, 2, 0.5, 1),
        (2, 2, 2.0, 1),
        (8, 16, 4.0, 8),
        (8, 16, 12.0, 4),
        (8, 8, 1.0, 7),
        (1, 1, 0.0, 1),
    ],
)
def test_other_programs_keep_their_cores(most: int, cores: int, others: float, threads: int) -> None:
    assert fitting_threads(most, cores, others) == threads


@pytest.mark.slow
def test_one_thread_is_left_when_all_cores_are_taken() -> None:
    if (psutil.cpu_count(logical=False) or 1) < 2 or len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is only one core")
    watch = subprocess.Popen(
        [sys.executable, "-c", WATCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        said, _ = watch.communicate("\n", timeout=60)
    finally:
        for process in [watch, *busy]:
            process.kill()
            process.wait()
    assert said.split()[-1] == "1"


def test_a_number_that_the_user_chose_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCH],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        input="\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]
