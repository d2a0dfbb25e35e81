from __future__ import annotations

import ctypes
import os
import struct
import sys

import pytest

from engine import memory_macos
from engine.memory_macos import RusageInfoV0, VMStatistics64

ON_MACOS = sys.platform == "darwin"


def test_the_counts_of_pages_lie_where_the_system_puts_them() -> None:
    """The bytes as `mach/vm_statistics.h` has them: 38 numbers of 32 bits, HOST_VM_INFO64_REV1_COUNT."""
    packed = struct.pack("=4I9Q2I4Q4IQ", *range(100, 124))
    assert len(packed) == 38 * 4 == ctypes.sizeof(VMStatistics64)
    told = VMStatistics64.from_buffer_copy(packed)
    assert (told.free, told.pageouts, told.swapouts, told.compressor) == (100, 107, 118, 119)


def test_the_footprint_lies_where_the_system_puts_it() -> None:
    """After 16 bytes of a UUID it is the eighth number of 64 bits, as `sys/resource.h` has it."""
    packed = struct.pack("=16B10Q", *range(16), *range(200, 210))
    assert RusageInfoV0.from_buffer_copy(packed).phys_footprint == 207


@pytest.mark.skipif(ON_MACOS, reason="asks for what only macOS tells")
def test_another_system_tells_nothing() -> None:
    assert memory_macos.pressure_level() is None
    assert memory_macos.page_counts() is None
    assert memory_macos.footprint_nbytes(os.getpid()) is None


@pytest.mark.skipif(not ON_MACOS, reason="asks macOS")
def test_macos_answers() -> None:
    counts = memory_macos.page_counts()
    assert memory_macos.pressure_level() in (1, 2, 4)
    assert counts is not None
    assert counts.active > 0
    assert (memory_macos.footprint_nbytes(os.getpid()) or 0) > 1 << 20
