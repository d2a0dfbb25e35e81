"""What only macOS tells of memory, by ctypes from libSystem.

The layouts are those of the public headers `mach/vm_statistics.h` and `sys/resource.h`. Each function returns
None where the system does not answer.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_PRESSURE_LEVEL = b"kern.memorystatus_vm_pressure_level"
_HOST_VM_INFO64 = 4
_RUSAGE_INFO_V0 = 0
_SUCCESS = 0
_IS_MACOS: bool = sys.platform == "darwin"


class VMStatistics64(ctypes.Structure):
    """`struct vm_statistics64`: counts of pages; those that newer systems append are not asked for."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("free", "active", "inactive", "wired")),
        *((name, ctypes.c_uint64) for name in ("zero_fills", "reactivations", "pageins", "pageouts")),
        *((name, ctypes.c_uint64) for name in ("faults", "cow_faults", "lookups", "hits", "purges")),
        *((name, ctypes.c_uint32) for name in ("purgeable", "speculative")),
        *((name, ctypes.c_uint64) for name in ("decompressions", "compressions", "swapins", "swapouts")),
        *((name, ctypes.c_uint32) for name in ("compressor", "throttled", "external", "internal")),
        ("in_compressor", ctypes.c_uint64),
    ]


class RusageInfoV0(ctypes.Structure):
    """`struct rusage_info_v0`: what a process has used; sizes in bytes."""

    _fields_ = [
        ("uuid", ctypes.c_uint8 * 16),
        *((name, ctypes.c_uint64) for name in ("user_time", "system_time", "idle_wakeups", "interrupts")),
        *((name, ctypes.c_uint64) for name in ("pageins", "wired_size", "resident_size", "phys_footprint")),
        *((name, ctypes.c_uint64) for name in ("start_time", "exit_time")),
    ]


def pressure_level() -> int | None:
    """Return the system's own judgement: 1 is normal, 2 a warning, 4 critical."""
    system = _lib_system()
    if system is None:
        return None
    level = ctypes.c_int(0)
    size = ctypes.c_size_t(ctypes.sizeof(level))
    status = system.sysctlbyname(_PRESSURE_LEVEL, ctypes.byref(level), ctypes.byref(size), None, 0)
    return level.value if status == _SUCCESS else None


def page_counts() -> VMStatistics64 | None:
    """Return the counts of pages of the whole system, as `vm_stat` prints them."""
    system = _lib_system()
    if system is None:
        return None
    counts = VMStatistics64()
    size = ctypes.c_uint32(ctypes.sizeof(counts) // ctypes.sizeof(ctypes.c_uint32))
    status = system.host_statistics64(_host(), _HOST_VM_INFO64, ctypes.byref(counts), ctypes.byref(size))
    return counts if status == _SUCCESS else None


def footprint_nbytes(pid: int) -> int | None:
    """Return the physical footprint of a process, which Activity Monitor shows as its memory."""
    system = _lib_system()
    if system is None:
        return None
    usage = RusageInfoV0()
    status = system.proc_pid_rusage(pid, _RUSAGE_INFO_V0, ctypes.byref(usage))
    return int(usage.phys_footprint) if status == _SUCCESS else None


@functools.cache
def _lib_system() -> ctypes.CDLL | None:
    """Return the system's library with its functions declared, None where it lacks one."""
    if not _IS_MACOS:
        return None
    try:
        system = ctypes.CDLL("/usr/lib/libSystem.B.dylib")
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        system.sysctlbyname.argtypes = [ctypes.c_char_p, pointer, pointer, pointer, size]
        system.host_statistics64.argtypes = [ctypes.c_uint32, ctypes.c_int, pointer, pointer]
        system.proc_pid_rusage.argtypes = [ctypes.c_int, ctypes.c_int, pointer]
        system.mach_host_self.restype = ctypes.c_uint32
    except (OSError, AttributeError):
        return None
    return system


@functools.cache
def _host() -> int:
    """Return the port of this computer; each call of `mach_host_self` would take another reference."""
    system = _lib_system()
    assert system is not None
    return int(system.mach_host_self())
