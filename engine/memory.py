"""How much memory there is, as the operating system tells it, and one moment of it as plain data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import psutil

from engine.control_group import GroupMemory, group_memory
from engine.figures import EngineFigures


class PressureLevel(enum.IntEnum):
    """How short memory is."""

    NORMAL = 0
    WARNING = 1
    CRITICAL = 2


@dataclass(frozen=True)
class MlxBytes:
    """MLX's own counters.

    Attributes:
        active_nbytes: its arrays.
        cache_nbytes: its free buffers.
        peak_nbytes: the most that its arrays took since the last reply began.
    """

    active_nbytes: int = 0
    cache_nbytes: int = 0
    peak_nbytes: int = 0


@dataclass(frozen=True)
class MemoryReading:
    """What the sensors said at one moment, not judged yet; sizes in bytes.

    Attributes:
        time_s: when, by `time.monotonic`.
        total_nbytes, available_nbytes: of the computer; available is what can be taken without swapping.
        swap_nbytes: swap in use.
        swap_rate: bytes a second that are written to swap, averaged over a few seconds.
        process_nbytes: the process's own memory.
        stalled: the share of the last 10 s in which something waited for memory, None where unknown.
        compressed_nbytes: held by the system's compressor, None where there is none.
        system_level: the system's own judgement (macOS), None where it gives none.
        group: the control group that limits the process, None without one.
        mlx: MLX's counters.
    """

    time_s: float
    total_nbytes: int
    available_nbytes: int
    swap_nbytes: int = 0
    swap_rate: float = 0.0
    process_nbytes: int = 0
    stalled: float | None = None
    compressed_nbytes: int | None = None
    system_level: PressureLevel | None = None
    group: GroupMemory | None = None
    mlx: MlxBytes = MlxBytes()


@dataclass(frozen=True)
class MemorySample:
    """Memory at one moment; sizes in bytes.

    Attributes:
        time_s: when, by `time.monotonic`.
        total_nbytes: of the computer, or of the control group where that has less.
        available_nbytes: what can be taken without swapping.
        swap_nbytes: swap in use, of the whole system.
        swap_rate: bytes a second by which the system writes to swap, averaged over a few seconds; 0 without.
        stalled: the share of time in which something waited for memory (Linux PSI, 10 s), None where unknown.
        compressed_nbytes: held by the system's compressor (macOS), None elsewhere.
        process_nbytes: the memory that is this process's own, in memory or in swap: anonymous pages on
            Linux, the physical footprint on macOS.
        active_nbytes: MLX's arrays.
        cache_nbytes: MLX's free buffers.
        peak_nbytes: the most that MLX's arrays took since the last reply began.
        engine: what the engine says of itself.
        level: how short memory is.
        reason: that in words, for people; says what is fine where nothing is short.
        has_spare: whether nothing is even near to being short.
    """

    time_s: float
    total_nbytes: int
    available_nbytes: int
    swap_nbytes: int
    swap_rate: float
    stalled: float | None
    compressed_nbytes: int | None
    process_nbytes: int
    active_nbytes: int
    cache_nbytes: int
    peak_nbytes: int
    engine: EngineFigures
    level: PressureLevel
    reason: str
    has_spare: bool = True

    @classmethod
    def of(
        cls,
        reading: MemoryReading,
        engine: EngineFigures,
        level: PressureLevel,
        reason: str,
        has_spare: bool = True,
    ) -> MemorySample:
        """Return a reading with what the engine says and the judgement."""
        group = reading.group
        free = reading.available_nbytes
        return cls(
            time_s=reading.time_s,
            total_nbytes=reading.total_nbytes if group is None else group.limit_nbytes,
            available_nbytes=free if group is None else min(free, group.free_nbytes),
            swap_nbytes=reading.swap_nbytes,
            swap_rate=reading.swap_rate,
            stalled=reading.stalled,
            compressed_nbytes=reading.compressed_nbytes,
            process_nbytes=reading.process_nbytes,
            active_nbytes=reading.mlx.active_nbytes,
            cache_nbytes=reading.mlx.cache_nbytes,
            peak_nbytes=reading.mlx.peak_nbytes,
            engine=engine,
            level=level,
            reason=reason,
            has_spare=has_spare,
        )


def total_nbytes() -> int:
    """Return the bytes of memory that this computer has, or its control group where that has less."""
    total = int(psutil.virtual_memory().total)
    group = group_memory(total)
    return total if group is None else group.limit_nbytes


def available_nbytes() -> int:
    """Return the bytes that can be taken without swapping, a container's limit considered."""
    memory = psutil.virtual_memory()
    group = group_memory(int(memory.total))
    free = int(memory.available)
    return free if group is None else min(free, group.free_nbytes)
