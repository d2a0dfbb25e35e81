"""When memory grows short: what is given up, in which order, and when it comes back."""

from __future__ import annotations

import enum
import math
import threading
from dataclasses import dataclass

from engine.memory import MemorySample, PressureLevel


class GuardStep(enum.IntEnum):
    """The ladder, from what nobody notices to what everybody does. A higher step includes the lower ones."""

    NONE = 0
    CLEAR_CACHE = 1
    """MLX's free buffers go back to the system."""
    LOWER_TIERS = 2
    """Hot and warm pages go to the bits of the settings early."""
    SPILL_IDLE = 3
    """Pages of conversations that are not being answered go to disk."""
    SMALLER_CHUNKS = 4
    """A prompt is read in smaller pieces, which need less room to work in."""
    TRIM = 5
    """The oldest turns leave the context, where the profile allows that."""
    PAUSE = 6
    """The reply waits until there is memory again or the user decides."""


@dataclass(frozen=True)
class GuardAction:
    """A step of the ladder that was taken, or taken back.

    Attributes:
        step: which.
        is_end: whether it ended: chunks have their size again, the reply goes on.
        reason: the pressure in words, such as `swap grows by 40 MB a second`.
        sentence: what was done, for people, with its figures.
        freed_nbytes: bytes of keys and values, or of MLX's free buffers, that this gave back.
    """

    step: GuardStep
    is_end: bool
    reason: str
    sentence: str
    freed_nbytes: int = 0


SAMPLES_UNTIL_ACTION = 2
"""Samples in a row that must be above normal: one alone is a spike."""
PATIENCE_S = {PressureLevel.WARNING: 4.0, PressureLevel.CRITICAL: 0.4}
"""Seconds that a step gets to work before the next one is asked for; what is critical is over in seconds."""
LAST_PATIENCE_S = {PressureLevel.WARNING: 10.0, PressureLevel.CRITICAL: 0.9}
"""The same before the steps from `TRIM` on, which cost the user something."""
CALM_S = 10.0
"""Seconds of normal memory, with some to spare, after which a step is taken back."""
SAMPLES_UNTIL_LIFTED = 3
"""Samples in a row below critical that end a pause."""
MAX_CAUTION = 8
"""How many times longer than that is waited at most, after steps had to be taken again."""


class Guard:
    """How far up the ladder things should be, from samples of memory alone; any thread may call it.

    It climbs one step at a time while pressure lasts, and comes down one step at a time once memory has been
    normal for a while. Each time that it has to climb again after it came down, it waits twice as long before
    it comes down the next time, so that pressure which comes and goes does not make it go up and down.

    Attributes:
        height: the step that things should be at.
        reason: why it last climbed, in words.
        ease: why it last came down, in words.
    """

    def __init__(self) -> None:
        self.height = GuardStep.NONE
        self.reason = ""
        self.ease = ""
        self._lock = threading.Lock()
        self._told = GuardStep.NONE
        self._moved_s = -math.inf
        self._calm_since_s = -math.inf
        self._pressed_samples = 0
        self._critical_samples = 0
        self._bearable_samples = 0
        self._came_down = False
        self._caution = 1
        self._may_pause = True

    def take(self, sample: MemorySample) -> bool:
        """Consider a sample, newer than the last; return whether the height has changed since that one."""
        with self._lock:
            self._count(sample)
            if self._is_up_due(sample):
                if self._came_down:
                    self._caution = min(self._caution * 2, MAX_CAUTION)
                self._move(GuardStep(self.height + 1), sample)
            elif self._is_down_due(sample):
                self._move(GuardStep(self.height - 1), sample)
            changed = self.height is not self._told
            self._told = self.height
            return changed

    def go_on(self) -> None:
        """Let the user end a pause: none is asked for again until memory has been normal once."""
        with self._lock:
            self._may_pause = False
            if self.height is GuardStep.PAUSE:
                self.height, self.ease = GuardStep.TRIM, "you let it go on"

    def _count(self, sample: MemorySample) -> None:
        is_normal = sample.level is PressureLevel.NORMAL
        is_calm = is_normal and sample.has_spare
        is_critical = sample.level is PressureLevel.CRITICAL
        self._pressed_samples = 0 if is_normal else self._pressed_samples + 1
        self._critical_samples = self._critical_samples + 1 if is_critical else 0
        self._bearable_samples = 0 if is_critical else self._bearable_samples + 1
        self._may_pause = self._may_pause or is_normal
        if not is_calm:
            self._calm_since_s = sample.time_s
        elif self.height is GuardStep.NONE and self._calm_s(sample) >= CALM_S * MAX_CAUTION:
            self._caution, self._came_down = 1, False

    def _is_up_due(self, sample: MemorySample) -> bool:
        if self._pressed_samples < SAMPLES_UNTIL_ACTION or self.height >= self._top():
            return False
        patience_s = LAST_PATIENCE_S if self.height + 1 >= GuardStep.TRIM else PATIENCE_S
        return sample.time_s - self._moved_s >= patience_s[sample.level]

    def _top(self) -> GuardStep:
        """Return how far the pressure may drive."""
        may_pause = self._may_pause and self._critical_samples >= SAMPLES_UNTIL_ACTION
        return GuardStep.PAUSE if may_pause else GuardStep.TRIM

    def _is_down_due(self, sample: MemorySample) -> bool:
        if self.height is GuardStep.PAUSE:
            return self._bearable_samples >= SAMPLES_UNTIL_LIFTED * self._caution
        return self.height is not GuardStep.NONE and self._calm_s(sample) >= CALM_S * self._caution

    def _calm_s(self, sample: MemorySample) -> float:
        """Return the seconds since memory was not calm, or the height was another."""
        return sample.time_s - max(self._calm_since_s, self._moved_s)

    def _move(self, height: GuardStep, sample: MemorySample) -> None:
        self._came_down = height < self.height
        if self._came_down:
            self.ease = sample.reason
        else:
            self.reason = sample.reason
        self.height, self._moved_s = height, sample.time_s
