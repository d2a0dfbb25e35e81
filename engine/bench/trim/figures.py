"""What is measured of trims, and the bars that the figures are held against; plain data."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from engine.bench.kv.figures import Bar

LEAST_SPEEDUP = 10.0
MOST_EXCESS = 0.05
STEADY_TURNS = 40
"""So many of the last turns of a long conversation are to take the same memory."""
MOST_GROWTH = 1.05
"""What the fullest turn of their second half may take of the fullest one of their first half."""


@dataclass(frozen=True)
class Perplexities:
    """Of the same held-out continuation behind what a model reads.

    Attributes:
        trimmed: behind the text after the trim.
        read_again: behind the same text read again from the start.
        whole: behind the text with nothing left out.
    """

    trimmed: float
    read_again: float
    whole: float

    @property
    def excess(self) -> float:
        """How much more the trim has than the same text read again: 0.01 is one per cent."""
        return self.trimmed / self.read_again - 1


@dataclass(frozen=True)
class TrimmedText:
    """One conversation that went over its limit once.

    Attributes:
        title: of its text.
        held_tokens: tokens that were held before.
        released_tokens: of them, those that left the context.
        summary_tokens: of the summary in their place.
        is_extract: whether rules wrote it, since the model could not.
        trimmed_tokens: of the prompt after the trim.
        read_tokens: of them, those that had to be read.
        summary_s: seconds in which the summary was written.
        ready_s: seconds from the question over the limit to the first token, the summary's writing left out.
        mlx_lm_s: seconds of mlx-lm from the same prompt to its first token.
        read_again_s: Octavo's own seconds from the same prompt to the first token, with nothing held.
        perplexity: of the continuation.
    """

    title: str
    held_tokens: int
    released_tokens: int
    summary_tokens: int
    is_extract: bool
    trimmed_tokens: int
    read_tokens: int
    summary_s: float
    ready_s: float
    mlx_lm_s: float
    read_again_s: float
    perplexity: Perplexities

    @property
    def speedup(self) -> float:
        """How many times as fast as mlx-lm's reading it was."""
        return self.mlx_lm_s / self.ready_s


@dataclass(frozen=True)
class TurnFigures:
    """One question and its answer in a long conversation.

    Attributes:
        number: from 1.
        prompt_tokens: of what the model read or had read.
        read_tokens: of them, those that had to be read.
        written_tokens: of the answer.
        nbytes: bytes of all keys and values after it, unused room included.
        process_nbytes: bytes of the process then.
        released_turns: turns that left the context before the answer.
        summary_s: seconds in which the reply waited for summaries to be written.
        first_token_s: seconds from the question to the first token without that.
        idle_s: seconds of work behind the answer, while the user reads it.
        is_answered: whether it ended as it should and has words.
    """

    number: int
    prompt_tokens: int
    read_tokens: int
    written_tokens: int
    nbytes: int
    process_nbytes: int
    released_turns: int
    summary_s: float
    first_token_s: float
    idle_s: float
    is_answered: bool

    @property
    def is_trimmed(self) -> bool:
        """Whether turns left the context before the answer."""
        return self.released_turns > 0


@dataclass(frozen=True)
class SummaryCounts:
    """The summaries of a conversation by who wrote them.

    Attributes:
        model: the model's own.
        extract: sentences of the text itself, chosen by rules.
    """

    model: int
    extract: int


@dataclass(frozen=True)
class LongRun:
    """A conversation that went on beyond its limit.

    Attributes:
        limit_tokens: of its context.
        turns: in order.
        num_rebuilds: how often it was read again in idle time, for its positions.
        summaries: that were written.
    """

    limit_tokens: int
    turns: tuple[TurnFigures, ...]
    num_rebuilds: int
    summaries: SummaryCounts

    @property
    def steady(self) -> tuple[TurnFigures, ...]:
        """The last turns, which should all take the same memory."""
        return self.turns[-STEADY_TURNS:]

    @property
    def num_answered(self) -> int:
        """Turns that were answered."""
        return sum(turn.is_answered for turn in self.turns)

    @property
    def trims(self) -> tuple[TurnFigures, ...]:
        """The turns before which others left the context."""
        return tuple(turn for turn in self.turns if turn.is_trimmed)

    @property
    def spread(self) -> float:
        """The most bytes of the last turns over the fewest; between two trims the context grows."""
        sizes = [turn.nbytes for turn in self.steady]
        return max(sizes) / min(sizes)

    @property
    def growth(self) -> float | None:
        """The most bytes of their second half over the most of their first; None for too few turns."""
        half = len(self.steady) // 2
        if not half:
            return None
        first, second = (
            max(turn.nbytes for turn in part) for part in (self.steady[:half], self.steady[half:])
        )
        return second / first


@dataclass(frozen=True)
class TrimBench:
    """All figures.

    Attributes:
        limit_tokens: of the conversations that were trimmed once.
        setup: device, BLAS and weights, in words; the same for both sides.
        versions: of the packages that computed, in words.
        kv: precision of Octavo's cache.
        texts: one conversation for each text.
        long_run: one conversation far beyond its limit.
    """

    limit_tokens: int
    setup: str
    versions: str
    kv: str
    texts: tuple[TrimmedText, ...]
    long_run: LongRun

    @property
    def speedup(self) -> float:
        """The median over the texts."""
        return statistics.median(text.speedup for text in self.texts)

    @property
    def excess(self) -> float:
        """The mean over the texts of how much more perplexity a trim has than the same text read again."""
        return _mean_ratio([text.perplexity.excess for text in self.texts])

    def bars(self) -> tuple[Bar, ...]:
        """Return the bars with their figures."""
        worst = max(text.perplexity.excess for text in self.texts)
        return (
            Bar("speed, of mlx-lm reading the trimmed text", LEAST_SPEEDUP, True, self.speedup),
            Bar("perplexity, of the same text read again, mean", 1 + MOST_EXCESS, False, 1 + self.excess),
            Bar("perplexity, of the same, the worst text", 1 + MOST_EXCESS, False, 1 + worst),
            Bar(
                f"most bytes, of the {STEADY_TURNS // 2} turns before",
                MOST_GROWTH,
                False,
                self.long_run.growth,
            ),
        )


def _mean_ratio(excesses: Sequence[float]) -> float:
    """Return the mean of ratios given as what they exceed 1 by: the geometric one."""
    return math.exp(statistics.fmean(math.log1p(excess) for excess in excesses)) - 1
