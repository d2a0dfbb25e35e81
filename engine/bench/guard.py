"""Figures of a conversation that was held in less memory than it would take."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from engine.guard import GuardAction
from engine.kv.precision import KVSpec
from engine.memory import MemorySample

NUM_TURNS = 6
ANSWER_TOKENS = 24
DEFAULT_KV = "4; hot=28, warm=4"
"""Exact as long as there is memory for it, which gives the guard something to take."""


@dataclass(frozen=True)
class GuardBenchPlan:
    """What is done.

    Attributes:
        model: a model's folder or file.
        kv: precision of the KV cache.
        share: of the memory that the conversation takes without a guard, what it gets with one.
        may_trim: whether the oldest turns may leave the context.
    """

    model: Path
    kv: KVSpec
    share: float
    may_trim: bool


@dataclass(frozen=True)
class GuardEvent:
    """A step that the guard had the engine take, or take back.

    Attributes:
        time_s: when, by the clock of the samples.
        action: what was done.
        process_nbytes: what the process took after it.
    """

    time_s: float
    action: GuardAction
    process_nbytes: int

    @property
    def title(self) -> str:
        """The step in words: `lower tiers`, `end of pause`."""
        name = self.action.step.name.lower().replace("_", " ")
        return f"end of {name}" if self.action.is_end else name


@dataclass(frozen=True)
class ConversationRun:
    """A conversation that was held while memory was watched.

    Attributes:
        most_nbytes: what the process was allowed, None for all that there is.
        begun_nbytes: what it took with the model loaded, before the first word.
        samples: memory all along, oldest first.
        events: the steps that were taken, oldest first.
        num_turns: questions that were asked.
        num_tokens: of all questions and answers.
        num_left_out_turns: the oldest turns that left the context on the way.
        num_overrides: pauses that ended because the user did not want to wait.
        problems: what is wrong with the answers or with what is stored; empty where nothing is.
    """

    most_nbytes: int | None
    begun_nbytes: int
    samples: tuple[MemorySample, ...]
    events: tuple[GuardEvent, ...]
    num_turns: int
    num_tokens: int
    num_left_out_turns: int
    num_overrides: int
    problems: tuple[str, ...]

    @property
    def most_taken_nbytes(self) -> int:
        """The most that the process took."""
        return max((sample.process_nbytes for sample in self.samples), default=self.begun_nbytes)

    @property
    def over_s(self) -> float:
        """The seconds in which it took more than it was allowed."""
        if self.most_nbytes is None:
            return 0.0
        return sum(
            later.time_s - sample.time_s
            for sample, later in pairwise(self.samples)
            if sample.process_nbytes > self.most_nbytes
        )


@dataclass(frozen=True)
class GuardBench:
    """The same conversation without a guard, then with one in less memory than that took."""

    free: ConversationRun
    guarded: ConversationRun
