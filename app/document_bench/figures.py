"""What is measured of facts that are asked for in a handbook; plain data."""

from __future__ import annotations

import enum
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from app.document_bench.facts import PlantedFact
from engine.memory import MemorySample


class BenchWay(enum.Enum):
    """How the handbook is read; the value is what an option calls it."""

    TRUNCATED = "truncated"
    """As much of its beginning as the context holds, whole: what is done without Octavo."""
    WHOLE = "whole"
    SEGMENTS = "segments"
    LOOK_UP = "look-up"


@dataclass(frozen=True)
class DocumentBenchPlan:
    """What is done.

    Attributes:
        num_tokens: of the handbook, about.
        num_facts: how many facts are planted.
        ways: how it is read, one after the other.
        max_context: tokens of the context, None for what the model and the memory give.
        num_asked: how many of the facts are asked for, evenly spread over the text; None for all.
    """

    num_tokens: int
    num_facts: int
    ways: tuple[BenchWay, ...]
    max_context: int | None = None
    num_asked: int | None = None


@dataclass(frozen=True)
class AskedFact:
    """A fact, and what was answered.

    Attributes:
        fact: what was asked for.
        text: the answer.
        is_found: whether it tells the fact, and nothing wrong that stands near it.
        is_read: whether the sentence is in what the answer was written from: in the beginning that was read,
            or in a passage that was noted or looked at.
        is_cited: whether the answer cites such a passage.
        seconds: from the question to the end of the answer.
        read_tokens: tokens that were read for it, those of segments included.
        written_tokens: tokens that were written, those of notes included.
        peak_kv_nbytes: the most bytes of keys and values at once meanwhile.
        peak_mlx_nbytes: the most bytes that MLX's arrays took at once.
    """

    fact: PlantedFact
    text: str
    is_found: bool
    is_read: bool
    is_cited: bool
    seconds: float
    read_tokens: int
    written_tokens: int
    peak_kv_nbytes: int
    peak_mlx_nbytes: int


@dataclass(frozen=True)
class WayRun:
    """Facts asked for, by one way.

    Attributes:
        way: which one.
        asked: the facts, in the order in which they were asked for.
        samples: memory meanwhile, in order; nothing of questions that were asked in an earlier run.
        refusal: why the document cannot be read in this way, else empty.
    """

    way: BenchWay
    asked: tuple[AskedFact, ...]
    samples: tuple[MemorySample, ...]
    refusal: str = ""

    @property
    def num_found(self) -> int:
        """How many answers tell the fact."""
        return sum(one.is_found for one in self.asked)

    @property
    def num_read(self) -> int:
        """How many facts were in what the answer was written from."""
        return sum(one.is_read for one in self.asked)

    @property
    def num_cited(self) -> int:
        """How many answers cite the passage of the fact."""
        return sum(one.is_cited for one in self.asked)

    @property
    def first_s(self) -> float:
        """Seconds of the first question."""
        return self.asked[0].seconds

    @property
    def later_s(self) -> float:
        """The median of the seconds of all other questions; of the first where there is no other."""
        return statistics.median(one.seconds for one in self.asked[1:] or self.asked)

    @property
    def read_tokens(self) -> int:
        """Tokens that were read for all questions."""
        return sum(one.read_tokens for one in self.asked)

    @property
    def peak_kv_nbytes(self) -> int:
        """The most bytes of keys and values at once."""
        return max(one.peak_kv_nbytes for one in self.asked)

    @property
    def peak_mlx_nbytes(self) -> int:
        """The most bytes that MLX's arrays took at once."""
        return max(one.peak_mlx_nbytes for one in self.asked)


@dataclass(frozen=True)
class DocumentBench:
    """The same handbook read by one way after the other.

    Attributes:
        num_tokens: of the handbook.
        num_facts: that are planted in it.
        limit_tokens: of the context.
        kv: precision of the KV cache.
        setup: what it ran on.
        versions: of the packages that compute.
        runs: one for each way.
    """

    num_tokens: int
    num_facts: int
    limit_tokens: int
    kv: str
    setup: str
    versions: str
    runs: tuple[WayRun, ...]

    @property
    def samples(self) -> Sequence[MemorySample]:
        """Memory over all ways, in order."""
        return [sample for run in self.runs for sample in run.samples]
