from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import psutil
import pytest

from engine.memory_sensor import MemorySensor, SwapRate, process_nbytes, read_mlx
from tests.engine.fresh_memory import fresh_memory

MB = 10**6


def test_the_sensor_says_what_psutil_says() -> None:
    reading = MemorySensor()()
    assert reading.total_nbytes == psutil.virtual_memory().total
    assert reading.available_nbytes == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    assert reading.swap_nbytes == pytest.approx(psutil.swap_memory().used, rel=0.2)
    assert 0 < reading.process_nbytes <= psutil.Process().memory_info().rss * 1.1


def test_the_sensor_follows_what_the_process_takes() -> None:
    sensor = MemorySensor()
    before = sensor().process_nbytes
    with fresh_memory(100 * MB):
        grown = sensor().process_nbytes - before
    assert grown == pytest.approx(100 * MB, rel=0.2)


def test_a_reading_takes_less_than_five_milliseconds() -> None:
    sensor = MemorySensor()
    sensor()
    times_s = []
    for _ in range(50):
        begun_s = time.perf_counter()
        sensor()
        times_s.append(time.perf_counter() - begun_s)
    assert sorted(times_s)[len(times_s) // 2] < 0.005


def test_another_process_is_watched_without_the_counters_of_this_one() -> None:
    import mlx.core as mx

    held = mx.zeros(1000)
    mx.eval(held)
    command = [sys.executable, "-c", f"held = b'1' * {50 * MB}; print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        reading = MemorySensor(lambda: child.pid)()
        child.communicate(b"\n")
    assert reading.process_nbytes == pytest.approx(55 * MB, rel=0.4)
    assert reading.mlx.active_nbytes == reading.mlx.peak_nbytes == 0


def test_a_process_that_has_ended_takes_nothing() -> None:
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert process_nbytes(child.pid) > MB
        child.communicate(b"\n")
    assert process_nbytes(child.pid) == 0


def test_without_a_process_the_system_is_watched_alone() -> None:
    reading = MemorySensor(lambda: None)()
    assert reading.process_nbytes == 0
    assert reading.total_nbytes == psutil.virtual_memory().total


def test_mlx_is_counted_from_any_thread() -> None:
    import mlx.core as mx

    before = read_mlx().active_nbytes
    held = mx.zeros(10 * MB // 4)
    mx.eval(held)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(read_mlx()))
    thread.start()
    thread.join()
    assert seen[0].active_nbytes - before == pytest.approx(held.nbytes, rel=0.01)
    assert seen[0].peak_nbytes >= seen[0].active_nbytes


def test_mlx_is_not_imported_to_count_it() -> None:
    check = (
        "import sys; from engine.memory_sensor import MemorySensor; taken = MemorySensor()();"
        "assert taken.mlx.active_nbytes == 0 and 'mlx.core' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", check], check=True, env=os.environ)


def test_swapping_is_averaged_over_five_seconds() -> None:
    rate = SwapRate()
    assert [rate.after(second, second * 10 * MB) for second in range(12)][-1] == 10 * MB


def test_one_burst_of_swapping_weighs_no_more_than_its_share() -> None:
    rate = SwapRate()
    rate.after(0.0, 0)
    assert rate.after(0.5, 50 * MB) == 10 * MB


def test_old_swap_has_no_rate() -> None:
    rate = SwapRate()
    assert [rate.after(second, 900 * MB) for second in range(8)] == [0.0] * 8


def test_swapping_is_forgotten_after_five_seconds() -> None:
    rate = SwapRate()
    counters = [0, 50 * MB, *[50 * MB] * 6]
    assert [rate.after(second, counter) > 0 for second, counter in enumerate(counters)] == (
        [False] + [True] * 5 + [False] * 2
    )


def test_a_counter_that_begins_again_gives_no_negative_rate() -> None:
    rate = SwapRate()
    rates = [rate.after(second, counter * MB) for second, counter in enumerate([10, 60, 5, 6])]
    assert min(rates) >= 0
    assert rates[2] == 0
    assert rates[3] == MB / 5
