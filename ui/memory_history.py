"""What the memory did since the program started: samples, thinned with age, and the guard's actions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from engine.figures import Phase
from engine.guard import GuardAction, GuardStep
from engine.memory import MemorySample

FULL_RATE_S = 3600.0
"""So long every sample is kept."""
_THINNED = 10
_MOST_OLD = 10_000
_MOST_EVENTS = 1_000
_WAITING = (Phase.PAUSED, Phase.TRIM)
"""Phases of a reply that waits; what can be given back is tried first."""


@dataclass(frozen=True)
class GuardEvent:
    """An action of the guard: `time_s` as in samples, `at` as on the clock."""

    time_s: float
    at: datetime
    action: GuardAction


class MemoryHistory:
    """Samples in the order of their times, and the guard's actions.

    Of samples older than `FULL_RATE_S` one of ten stays: the one in which this process took most.

    Attributes:
        events: the guard's actions, oldest first.
    """

    def __init__(self) -> None:
        self.events: deque[GuardEvent] = deque(maxlen=_MOST_EVENTS)
        self._old: deque[MemorySample] = deque(maxlen=_MOST_OLD)
        self._recent: deque[MemorySample] = deque()

    def __len__(self) -> int:
        return len(self._old) + len(self._recent)

    @property
    def latest(self) -> MemorySample | None:
        """The newest sample."""
        return self._recent[-1] if self._recent else None

    @property
    def recent(self) -> Iterable[MemorySample]:
        """The samples that are kept at full rate."""
        return iter(self._recent)

    def samples(self) -> list[MemorySample]:
        """Return all samples, oldest first."""
        return [*self._old, *self._recent]

    def add(self, sample: MemorySample) -> None:
        """Take a sample that is newer than all others."""
        self._recent.append(sample)
        while len(self._recent) > _THINNED and self._recent[_THINNED].time_s <= sample.time_s - FULL_RATE_S:
            leaving = [self._recent.popleft() for _ in range(_THINNED)]
            self._old.append(max(leaving, key=lambda one: one.process_nbytes))

    def pause(self) -> GuardEvent | None:
        """Return the action by which a reply waits for memory now, None while none waits."""
        event = next((one for one in reversed(self.events) if one.action.step is GuardStep.PAUSE), None)
        if event is None or event.action.is_end:
            return None
        is_over = (
            self.latest is not None
            and self.latest.time_s > event.time_s
            and self.latest.engine.phase not in _WAITING
        )
        return None if is_over else event
