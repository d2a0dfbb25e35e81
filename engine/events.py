"""What the engine tells while it works: frozen, plain data, safe to hand to another thread."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from engine.guard import GuardAction
from engine.kv.precision import KVSpec
from engine.kv.usage import KVUsage


class LoadStage(enum.Enum):
    """The steps of loading a model, in order."""

    READING = "Reading the files"
    WEIGHTS = "Loading the weights"
    TOKENIZER = "Preparing the tokenizer"


@dataclass(frozen=True)
class LoadProgress:
    """Progress of loading: `done` of `total` bytes of weights within `stage`."""

    stage: LoadStage
    done: int
    total: int


class StopReason(enum.Enum):
    """Why a reply ended."""

    END = "end"
    """The model wrote its end-of-turn token."""
    LENGTH = "length"
    """The wanted number of tokens was reached."""
    CONTEXT = "context"
    """The context is full."""
    STOPPED = "stopped"
    """The user stopped it."""


@dataclass(frozen=True)
class PrefillProgress:
    """Progress of reading the prompt: `done` of `total` tokens, of which `reused` were not read again."""

    done: int
    total: int
    reused: int

    @property
    def share(self) -> float:
        """How much of it has been read, 0 to 1."""
        return self.done / self.total if self.total else 1.0


@dataclass(frozen=True)
class Token:
    """One decoded token: `text` is what became printable with it and may be empty."""

    text: str
    token_id: int


@dataclass(frozen=True)
class GenerationStats:
    """Figures of one reply.

    Times are in seconds, rates in tokens per second, sizes in bytes. `prefill_tps` counts only the tokens
    that were read, not the reused ones. `ttft_s` runs from the request to the first token; the time that a
    reply waits for memory counts to that, and to no rate. `kv` is the precision that was asked for, as
    `KVSpec` writes it, `kv_usage` what is held, None for a reply that was stored before that was known or for
    which nothing was read, and `kv_note` a sentence where some layers could not take that precision.
    `left_out_turns` are the oldest turns that the model did not read, or no longer has. `segments` are the
    parts in which documents were read that did not fit whole, 0 where all was read at once. `reread_note`
    says in a sentence why text of earlier turns was read again, where some was. `summary_s` is what of
    `ttft_s` went into summaries of old turns, 0 where none was written before the reply.
    """

    prompt_tokens: int
    reused_tokens: int
    completion_tokens: int
    ttft_s: float
    prefill_tps: float
    decode_tps: float
    kv: str
    kv_usage: KVUsage | None
    peak_nbytes: int
    stop_reason: StopReason
    kv_note: str | None = None
    left_out_turns: int = 0
    segments: int = 0
    reread_note: str | None = None
    summary_s: float = 0.0

    @property
    def was_asked(self) -> bool:
        """Whether a model was asked for the reply, or would have been when it was stopped."""
        return self.prompt_tokens > 0 or self.stop_reason is not StopReason.END

    @classmethod
    def of_nothing(cls, kv: KVSpec, reason: StopReason) -> GenerationStats:
        """Return the figures of a reply for which nothing was read."""
        return cls(
            prompt_tokens=0,
            reused_tokens=0,
            completion_tokens=0,
            ttft_s=0.0,
            prefill_tps=0.0,
            decode_tps=0.0,
            kv=str(kv),
            kv_usage=None,
            peak_nbytes=0,
            stop_reason=reason,
        )


@dataclass(frozen=True)
class CacheChanged:
    """What the cache holds now, and the precision `kv` that has reached it."""

    kv: KVSpec
    usage: KVUsage


@dataclass(frozen=True)
class ContextShortened:
    """Memory was short, and `GenerationRequest.shorter` is what the reply goes on with.

    Attributes:
        num_tokens: tokens that left the context.
    """

    num_tokens: int


@dataclass(frozen=True)
class AttendedPassage:
    """A passage of a document to which the model attended while it answered: an indication, not a proof.

    Attributes:
        key: of the document.
        start: about its first character in what was written of the document.
        stop: about the one behind its last.
        share: of the attention on documents, 0 to 1; places that many heads look at alone count most.
    """

    key: str
    start: int
    stop: int
    share: float


@dataclass(frozen=True)
class Finished:
    """The last event of a reply.

    Attributes:
        stats: its figures.
        attended: the passages of documents with most of the attention, those with more of it first.
    """

    stats: GenerationStats
    attended: tuple[AttendedPassage, ...] = ()


GenerationEvent = PrefillProgress | Token | CacheChanged | GuardAction | ContextShortened | Finished
