from __future__ import annotations

import mmap
import os
import platform
import sys
from pathlib import Path

import pytest

from engine.memory_linux import (
    own_nbytes,
    parse_own_nbytes,
    parse_stalled_share,
    stalled_share,
    trim_heap,
)
from tests.engine.fresh_memory import fresh_memory

MIB = 1 << 20

PRESSURE = """\
some avg10=12.50 avg60=3.01 avg300=0.60 total=1084320
full avg10=9.75 avg60=2.20 avg300=0.45 total=900123
"""
STATUS = """\
Name:\tpython
VmRSS:\t  180432 kB
RssAnon:\t  150000 kB
RssFile:\t   30000 kB
RssShmem:\t     432 kB
VmSwap:\t    2048 kB
"""


def test_the_share_of_time_that_some_program_waited_is_read() -> None:
    assert parse_stalled_share(PRESSURE) == pytest.approx(0.125)


@pytest.mark.parametrize("text", ["", "full avg10=1.0 avg60=0 avg300=0 total=0\n"])
def test_a_text_without_that_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="some"):
        parse_stalled_share(text)


def test_a_kernel_without_pressure_tells_nothing(tmp_path: Path) -> None:
    assert stalled_share(tmp_path / "memory") is None
    (tmp_path / "memory").write_text("")
    assert stalled_share(tmp_path / "memory") is None


def test_a_process_owns_its_anonymous_pages_in_memory_and_in_swap() -> None:
    assert parse_own_nbytes(STATUS) == (150000 + 2048) * 1024


def test_a_process_without_memory_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="no memory"):
        parse_own_nbytes("Name:\tkthreadd\nState:\tS (sleeping)\n")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_a_process_writes_is_its_own_and_a_file_that_it_reads_is_not(tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(64 * MIB))
    before = own_nbytes(os.getpid())
    assert before is not None
    with big.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert sum(mapped[:: mmap.PAGESIZE]) == 0
        read = own_nbytes(os.getpid())
        with fresh_memory(64 * MIB):
            after = own_nbytes(os.getpid())
    assert read is not None
    assert after is not None
    assert read - before < 16 * MIB
    assert after - read == pytest.approx(64 * MIB, abs=16 * MIB)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_has_ended_owns_nothing_that_is_known() -> None:
    assert own_nbytes(2**22 + 1) is None


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tries glibc's heap")
def test_small_buffers_of_mlx_go_back_to_the_system() -> None:
    """Every second one stays, so that the heap cannot shrink from its end alone."""
    import mlx.core as mx

    buffers = [mx.zeros(4000) + 1 for _ in range(3000)]
    mx.eval(buffers)
    kept = buffers[::2]
    del buffers
    mx.clear_cache()
    cleared = own_nbytes(os.getpid())
    trim_heap()
    trimmed = own_nbytes(os.getpid())
    assert cleared is not None
    assert trimmed is not None
    assert cleared - trimmed > 0.5 * sum(array.nbytes for array in kept)
