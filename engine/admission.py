"""What does not fit into memory is refused before it is touched, with the numbers and with what would fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.errors import OctavoError
from engine.kv.precision import KVSpec


@dataclass(frozen=True)
class LowerPrecision:
    """Fits at a lower KV precision: the mildest one that does."""

    kv: KVSpec
    fitting_tokens: int


@dataclass(frozen=True)
class ShorterContext:
    """Fits with a context of at most so many tokens."""

    max_context: int


@dataclass(frozen=True)
class LongerContext:
    """Fits with a context limit of so many tokens in place of the one that was set."""

    max_context: int


@dataclass(frozen=True)
class PackedWeights:
    """Fits when the model is loaded again with its weights as they are stored, which computes slower."""

    fitting_tokens: int


_ANSWER_ROOM_TOKENS = 1024
_LIMIT_STEP_TOKENS = 1024


def longer_context(needed_tokens: int, fitting_tokens: int) -> LongerContext | None:
    """Return a round limit that leaves room for an answer, as far as that fits; None where less is needed.

    Args:
        needed_tokens: the prompt and the shortest answer.
        fitting_tokens: what model and memory hold.
    """
    if needed_tokens > fitting_tokens:
        return None
    round_tokens = -(-(needed_tokens + _ANSWER_ROOM_TOKENS) // _LIMIT_STEP_TOKENS) * _LIMIT_STEP_TOKENS
    return LongerContext(min(round_tokens, fitting_tokens))


@dataclass(frozen=True)
class InSegments:
    """Fits when documents are read in segments, one after another.

    Attributes:
        num_segments: about how many.
        document_tokens: of all of these documents.
        keys: of the documents.
    """

    num_segments: int
    document_tokens: int = 0
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class LookUp:
    """Fits when documents, by their keys, are looked up: only passages that fit the question are read."""

    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReadWhole:
    """Fits when documents, by their keys, are read whole, of so many tokens."""

    document_tokens: int = 0
    keys: tuple[str, ...] = ()


MOST_SEGMENT_TOKENS = 2048
"""A segment has at most so many tokens, fewer where the context is small."""
LEAST_SEGMENT_TOKENS = 64
"""Reading in smaller segments leads nowhere."""
_MOST_NOTE_TOKENS = 2048
INSTRUCTION_TOKENS = 130
"""About what a model is told beside a segment."""
_MOST_READING_TOKENS = 4096
_LEAST_ROOM_TOKENS = 96
"""What the notes on a document, or the passages of all that are looked up, have at least with what stands
around them."""
_LINE_TOKENS = 24
"""About what the line takes that names a document which is not read whole."""


def note_room_tokens(limit_tokens: int) -> int:
    """Return what a context keeps for writing notes on a segment, reasoning included."""
    return min(limit_tokens // 4, _MOST_NOTE_TOKENS)


def reading_room_tokens(limit_tokens: int) -> int:
    """Return what a context keeps for all that is read of documents in segments or by looking up."""
    return min(limit_tokens // 4, _MOST_READING_TOKENS)


def least_room_tokens(num_in_segments: int, num_looked_up: int) -> int:
    """Return what is needed at least for what is read of documents; those looked up share one room."""
    return _LEAST_ROOM_TOKENS * (num_in_segments + (num_looked_up > 0))


def has_room_for_notes(num_documents: int, limit_tokens: int) -> bool:
    """Return whether a context has room for the notes on each of so many documents."""
    return least_room_tokens(num_documents, 0) <= reading_room_tokens(limit_tokens)


def has_room_for_passages(limit_tokens: int) -> bool:
    """Return whether a context has room for passages of documents that are looked up, however many."""
    return least_room_tokens(0, 1) <= reading_room_tokens(limit_tokens)


def too_large(tokens: Sequence[int], room_tokens: int) -> list[int]:
    """Return which documents, by their index, cannot be read whole: as few as can be, the largest ones.

    Args:
        tokens: of each document.
        room_tokens: for those that are read whole, and the lines that name the others.
    """
    by_size = sorted(range(len(tokens)), key=lambda index: -tokens[index])
    left = sum(tokens)
    for number, index in enumerate(by_size):
        if left + number * _LINE_TOKENS <= room_tokens:
            return sorted(by_size[:number])
        left -= tokens[index]
    return list(range(len(tokens)))


def limit_with_reading_room(room_tokens: int) -> int | None:
    """Return the least context that keeps so much for what is read of documents, None where none does."""
    return None if room_tokens > _MOST_READING_TOKENS else 4 * room_tokens


def segment_tokens(question_tokens: int, limit_tokens: int) -> int | None:
    """Return the most tokens of a segment, None where the context is too small for any.

    The question, what is asked about a segment, and the notes on it need room beside each one.
    """
    room = limit_tokens - note_room_tokens(limit_tokens) - question_tokens - INSTRUCTION_TOKENS
    return min(room, MOST_SEGMENT_TOKENS) if room >= LEAST_SEGMENT_TOKENS else None


def num_segments(
    document_tokens: int, question_tokens: int, limit_tokens: int, num_documents: int = 1
) -> int | None:
    """Return in about how many segments a context takes documents, None where it is too small for that.

    It is where there is no room for notes on each document, either.
    """
    if not has_room_for_notes(num_documents, limit_tokens):
        return None
    most = segment_tokens(question_tokens, limit_tokens)
    return None if most is None else -(-document_tokens // most)


def other_ways(
    documents: Sequence[tuple[str, int]], question_tokens: int, limit_tokens: int
) -> Iterator[InSegments | LookUp]:
    """Yield to read documents in segments or to look them up, where a context has room for that.

    Args:
        documents: the key and the tokens of each.
        question_tokens: of what stands beside them.
        limit_tokens: of the context.
    """
    keys, num_tokens = tuple(key for key, _ in documents), sum(tokens for _, tokens in documents)
    count = num_segments(num_tokens, question_tokens, limit_tokens, len(documents))
    if keys and count:
        yield InSegments(count, num_tokens, keys)
    if keys and has_room_for_passages(limit_tokens):
        yield LookUp(keys)


@dataclass(frozen=True)
class DropTurns:
    """Fits when the oldest turns are left out of what the model reads; the conversation keeps them."""

    num_turns: int


@dataclass(frozen=True)
class SummarizeTurns:
    """Fits when so many old turns are replaced by a summary that the model writes."""

    num_turns: int


@dataclass(frozen=True)
class SmallerModel:
    """Fits with a model of at most so many bytes of weights in memory."""

    weights_nbytes: int


Choice = (
    LongerContext
    | PackedWeights
    | LowerPrecision
    | ShorterContext
    | InSegments
    | LookUp
    | ReadWhole
    | SummarizeTurns
    | DropTurns
    | SmallerModel
)


class AdmissionError(OctavoError):
    """A model or a message that does not fit into memory.

    Attributes:
        needed_nbytes: what it takes, the reserve included.
        available_nbytes: what could be had.
        choices: what would fit, the mildest first; empty where nothing would.
        can_override: whether the user may go on all the same, knowing that the computer may swap.
        limit_nbytes: the memory that the user allows, where only that is in the way; None where the computer
            does not have enough.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_nbytes: int,
        available_nbytes: int,
        choices: tuple[Choice, ...] = (),
        can_override: bool = True,
        limit_nbytes: int | None = None,
    ) -> None:
        super().__init__(message)
        self.needed_nbytes = needed_nbytes
        self.available_nbytes = available_nbytes
        self.choices = choices
        self.can_override = can_override
        self.limit_nbytes = limit_nbytes


class ContextOverflowError(AdmissionError):
    """A prompt that is longer than the positions that the model was made for, whatever memory there is.

    Attributes:
        needed_tokens: tokens of the prompt plus the least room for an answer.
        limit_tokens: positions of the model.
    """

    def __init__(
        self,
        message: str,
        *,
        needed_tokens: int,
        limit_tokens: int,
        needed_nbytes: int = 0,
        available_nbytes: int = 0,
        choices: tuple[Choice, ...] = (),
    ) -> None:
        super().__init__(
            message,
            needed_nbytes=needed_nbytes,
            available_nbytes=available_nbytes,
            choices=choices,
            can_override=False,
        )
        self.needed_tokens = needed_tokens
        self.limit_tokens = limit_tokens
