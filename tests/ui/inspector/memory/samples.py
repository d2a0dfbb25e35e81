"""Samples of memory made up: a model is loaded, reads, writes, and memory grows short once."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta

from engine.figures import EngineFigures, KVBytes, Phase
from engine.guard import GuardAction, GuardStep
from engine.memory import MemorySample, PressureLevel
from ui.memory_history import GuardEvent, MemoryHistory

MB = 1_000_000
GB = 1_000_000_000

IDLE = MemorySample(
    time_s=1_000.0,
    total_nbytes=16 * GB,
    available_nbytes=9 * GB,
    swap_nbytes=0,
    swap_rate=0.0,
    stalled=0.0,
    compressed_nbytes=None,
    process_nbytes=400 * MB,
    active_nbytes=0,
    cache_nbytes=0,
    peak_nbytes=0,
    engine=EngineFigures(),
    level=PressureLevel.NORMAL,
    reason="9.0 GB are free and nothing is swapped.",
)

BUSY = dataclasses.replace(
    IDLE,
    time_s=1_001.0,
    process_nbytes=3_000 * MB,
    swap_nbytes=120 * MB,
    active_nbytes=2_350 * MB,
    cache_nbytes=150 * MB,
    engine=EngineFigures(
        phase=Phase.DECODE,
        weights_nbytes=1_000 * MB,
        kv=KVBytes(hot=100 * MB, warm=200 * MB, cold=400 * MB, open=50 * MB, idle=600 * MB),
        planned_weights_nbytes=980 * MB,
        planned_kv_nbytes=800 * MB,
    ),
)


def at(sample: MemorySample, time_s: float, **figures: object) -> MemorySample:
    """Return `sample` at another time, with other figures."""
    return dataclasses.replace(sample, time_s=time_s, **figures)


def event(time_s: float, step: GuardStep = GuardStep.LOWER_TIERS, *, is_end: bool = False) -> GuardEvent:
    """Return an action of the guard."""
    action = GuardAction(step, is_end, "swap grows by 40 MB a second", f"{step.name} at {time_s:g}.", 5 * MB)
    return GuardEvent(time_s, datetime(2026, 1, 2, 12, 0) + timedelta(seconds=time_s), action)


def story(seconds: int = 600) -> MemoryHistory:
    """Return a run: load, read, write, a second conversation, and a guard that acts at three quarters."""
    history = MemoryHistory()
    for second in range(seconds):
        history.add(_moment(second, second / seconds))
    begin = IDLE.time_s
    history.events.append(event(begin + seconds * 0.75, GuardStep.CLEAR_CACHE))
    history.events.append(event(begin + seconds * 0.78, GuardStep.LOWER_TIERS))
    history.events.append(event(begin + seconds * 0.80, GuardStep.SPILL_IDLE))
    return history


def _moment(second: int, share: float) -> MemorySample:
    weights = round(1_900 * MB * min(1.0, max(0.0, share - 0.05) / 0.1))
    grown = max(0.0, share - 0.2)
    is_short = 0.72 < share < 0.82
    has_acted = share >= 0.75
    kv = KVBytes(
        hot=round(min(60 * MB, grown * 400 * MB) * (0.4 if has_acted else 1)),
        warm=round(min(120 * MB, grown * 600 * MB) * (0.2 if has_acted else 1)),
        cold=round(max(0.0, share - 0.25) * 900 * MB),
        open=round(grown and (second % 40) * MB),
        idle=0 if share >= 0.8 or share < 0.4 else 260 * MB,
    )
    phase = _phase(share)
    work = 180 * MB * (second % 5) / 5 if phase is Phase.PREFILL else 0
    cache = round(0 if 0.75 < share < 0.8 else min(250, grown * 800) * MB)
    rest = 420 * MB + round(work)
    planned = round(sum((kv.hot, kv.warm, kv.cold, kv.open)) * 1.03)
    process = weights + kv.total + cache + rest
    free = 16 * GB - 9 * GB - process - (2_600 * MB if is_short else 0)
    return dataclasses.replace(
        IDLE,
        time_s=IDLE.time_s + second,
        available_nbytes=free,
        swap_nbytes=round(max(0.0, min(1.0, (share - 0.7) * 12)) * 700 * MB),
        process_nbytes=process,
        active_nbytes=weights + kv.total,
        cache_nbytes=cache,
        engine=EngineFigures(phase, weights, kv, round(1_900 * MB * 0.99) if weights else 0, planned),
        level=PressureLevel.WARNING if is_short else PressureLevel.NORMAL,
        reason="Swap grows by 40 MB a second." if is_short else "4.1 GB are free and swap is quiet.",
    )


def _phase(share: float) -> Phase:
    steps = (
        (0.05, Phase.IDLE),
        (0.15, Phase.LOAD),
        (0.2, Phase.IDLE),
        (0.35, Phase.PREFILL),
        (0.6, Phase.DECODE),
        (0.65, Phase.IDLE),
        (0.75, Phase.PREFILL),
        (0.8, Phase.TRIM),
        (0.83, Phase.PAUSED),
        (0.95, Phase.DECODE),
    )
    return next((phase for end, phase in steps if share < end), Phase.IDLE)
