"""What is measured of text read ahead and of prefixes that outlive the process, and the bars; plain data."""

from __future__ import annotations

import enum
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.bench.kv.figures import Bar

LEAST_SPEEDUP = 100.0
LEAST_AHEAD_SPEEDUP = 50.0
LEAST_RESTORE_MBPS = 200.0
MOST_DISK_RATIO = 1.05
LEAST_DECODE_RATIO = 0.95
_MB = 1e6


class Start(enum.Enum):
    """What a process finds on disk, or has read ahead, before its first question about a document."""

    NOTHING = "nothing kept"
    AHEAD = "nothing kept, but read ahead"
    NOTHING_YET = "nothing kept, and keeping it"
    CONVERSATION = "the same conversation"
    LOADED = "the same, loaded before the question"
    DOCUMENT = "a new one about the same document"


@dataclass(frozen=True)
class FirstToken:
    """The first answer of a process.

    Attributes:
        prompt_tokens: of the prompt.
        reused_tokens: of them, those that were not read.
        ttft_s: seconds from the question to the first token, with the model loaded.
        process_s: seconds from the start of the process to it.
        note: why text was read again, where some was.
    """

    prompt_tokens: int
    reused_tokens: int
    ttft_s: float
    process_s: float
    note: str | None = None


@dataclass(frozen=True)
class Kept:
    """A conversation that was read, answered and saved.

    Attributes:
        conversation_id: whose it is.
        leaf_id: of the answer.
        first: of its answer, while it was being saved.
        num_tokens: that it holds.
        open_tokens: of them, those that no page holds yet.
        nbytes: bytes of its pages in memory and of the open tokens, without room to spare.
        pages_nbytes: of its pages alone.
        stored_nbytes: of all of it as it is stored, without what the file takes to find it.
        disk_nbytes: bytes of the whole file.
        save_s: seconds after the answer until everything was written.
    """

    conversation_id: int
    leaf_id: int
    first: FirstToken
    num_tokens: int
    open_tokens: int
    nbytes: int
    pages_nbytes: int
    stored_nbytes: int
    disk_nbytes: int
    save_s: float

    @property
    def disk_ratio(self) -> float:
        """Bytes of the file over those in memory."""
        return self.disk_nbytes / self.nbytes


@dataclass(frozen=True)
class Loaded:
    """A kept conversation that was loaded before the question.

    Attributes:
        first: of the answer after it.
        nbytes: of the pages that came from disk.
        seconds: until they were in memory.
    """

    first: FirstToken
    nbytes: int
    seconds: float

    @property
    def mbps(self) -> float:
        """Megabytes in a second."""
        return self.nbytes / _MB / self.seconds


@dataclass(frozen=True)
class DecodeWhileWriting:
    """Answers that were written by turns with an idle disk and with pages always waiting to be written.

    Attributes:
        idle_tps: tokens per second of each answer with nothing to write.
        writing_tps: of each with pages always waiting; the writer pauses between two of them.
        written_nbytes: bytes of the pages that were written meanwhile.
        seconds: that these answers took.
    """

    idle_tps: tuple[float, ...]
    writing_tps: tuple[float, ...]
    written_nbytes: int
    seconds: float

    @property
    def ratio(self) -> float:
        """The median speed while pages are written over that without."""
        return statistics.median(self.writing_tps) / statistics.median(self.idle_tps)

    @property
    def written_mbps(self) -> float:
        """Megabytes of pages in a second while they were written."""
        return self.written_nbytes / _MB / self.seconds


@dataclass(frozen=True)
class SavedPromptCache:
    """The same text in mlx-lm's cache, saved by its `save_prompt_cache`.

    Attributes:
        bits: of keys and values.
        num_tokens: that it holds.
        nbytes: bytes of its keys and values in memory, with the unused room that it saves as well.
        disk_nbytes: bytes of its file.
        save_s: seconds of saving.
    """

    bits: int
    num_tokens: int
    nbytes: int
    disk_nbytes: int
    save_s: float


@dataclass(frozen=True)
class LoadedPromptCache:
    """mlx-lm's file in a process that was started afresh.

    Attributes:
        load_s: seconds of `load_prompt_cache` until all is in memory.
        ttft_s: the same, and reading the question to the first token.
        process_s: seconds from the start of the process to it.
    """

    load_s: float
    ttft_s: float
    process_s: float


@dataclass(frozen=True)
class PromptCacheFigures:
    """mlx-lm's side at one precision, saved once and loaded by a process of its own."""

    saved: SavedPromptCache
    loaded: LoadedPromptCache

    @property
    def load_mbps(self) -> float:
        """Megabytes in a second."""
        return self.saved.disk_nbytes / _MB / self.loaded.load_s


@dataclass(frozen=True)
class PrefixBench:
    """All figures.

    Attributes:
        num_tokens: of the document.
        setup: device, BLAS and weights, in words; the same for both sides.
        versions: of the packages that computed, in words.
        kv: precision of Octavo's cache.
        from_disk: whether the files were taken out of the system's own memory before each restart, so that
            they came from the disk.
        cold: what was read with nothing kept.
        ahead: the same, read before the question.
        kept: the same, saved.
        restarts: answers of processes that found something, by what that was.
        loaded: those that loaded the conversation before the question.
        decode: answers while pages are written and without.
        prompt_caches: mlx-lm's.
    """

    num_tokens: int
    setup: str
    versions: str
    kv: str
    from_disk: bool
    cold: FirstToken
    ahead: FirstToken
    kept: Kept
    restarts: Mapping[Start, tuple[FirstToken, ...]]
    loaded: tuple[Loaded, ...]
    decode: DecodeWhileWriting
    prompt_caches: tuple[PromptCacheFigures, ...]

    def first_tokens(self) -> Mapping[Start, tuple[FirstToken, ...]]:
        """Return all answers by what their processes found, in the order of `Start`."""
        found = {
            Start.NOTHING: (self.cold,),
            Start.AHEAD: (self.ahead,),
            Start.NOTHING_YET: (self.kept.first,),
            Start.LOADED: tuple(one.first for one in self.loaded),
            **self.restarts,
        }
        return {start: found[start] for start in Start}

    def speedup(self, start: Start) -> float:
        """Return how many times as fast as with nothing kept the first token came, the median."""
        return self.cold.ttft_s / median_of(self.first_tokens()[start]).ttft_s

    @property
    def restore_mbps(self) -> float:
        """Megabytes of pages in a second from the disk into memory, the median."""
        return statistics.median(one.mbps for one in self.loaded)

    def bars(self) -> tuple[Bar, ...]:
        """Return the bars with their figures."""
        return (
            Bar(
                "first token after reading ahead, of reading it",
                LEAST_AHEAD_SPEEDUP,
                True,
                self.speedup(Start.AHEAD),
            ),
            Bar(
                "first token after a restart, of reading it",
                LEAST_SPEEDUP,
                True,
                self.speedup(Start.CONVERSATION),
            ),
            Bar("from the disk into memory", LEAST_RESTORE_MBPS, True, self.restore_mbps, " MB/s"),
            Bar("bytes of the file, of the same in memory", MOST_DISK_RATIO, False, self.kept.disk_ratio),
            Bar(
                "decode speed while pages are written, of without",
                LEAST_DECODE_RATIO,
                True,
                self.decode.ratio,
            ),
        )


def median_of(answers: Sequence[FirstToken]) -> FirstToken:
    """Return the answer whose first token came in the middle; of an even number the later one."""
    return sorted(answers, key=lambda one: one.ttft_s)[len(answers) // 2]


def kept_from(fields: Mapping[str, Any]) -> Kept:
    """Return what `dataclasses.asdict` made fields of."""
    return Kept(**{**fields, "first": FirstToken(**fields["first"])})


def loaded_from(fields: Mapping[str, Any]) -> Loaded:
    """Return what `dataclasses.asdict` made fields of."""
    return Loaded(**{**fields, "first": FirstToken(**fields["first"])})


def decode_from(fields: Mapping[str, Any]) -> DecodeWhileWriting:
    """Return what `dataclasses.asdict` made fields of."""
    speeds = {name: tuple(fields[name]) for name in ("idle_tps", "writing_tps")}
    return DecodeWhileWriting(**{**fields, **speeds})
