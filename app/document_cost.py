"""What a document costs to read, by each way, and which way is the sensible one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from app.document_size import DocumentSize
from app.documents.ways import DocumentWay
from app.duration_words import duration_words, short_duration
from app.profiles import DocumentMode
from app.reading_speed import ReadingSpeed
from engine.admission import (
    INSTRUCTION_TOKENS,
    has_room_for_notes,
    reading_room_tokens,
    segment_tokens,
)
from engine.budget import kv_nbytes
from engine.kv.precision import KVSpec
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import LoadedModel

MOST_AUTO_S = 600
"""Documents are read in segments by themselves where that takes at most so long for a question."""
NOTE_TOKENS = 100
"""About what a model writes on a segment."""
_AT_ONCE_S = 2


@dataclass(frozen=True)
class ReadingRoom:
    """The room that a document is read in.

    Attributes:
        limit_tokens: the context, prompt and answer together.
        other_tokens: what else is read with it: the system prompt, what stays of the conversation, other
            documents that are read whole, the question.
        question_tokens: the question alone, as far as it is written.
        reading_tokens: kept for what is read of other documents, in segments or by looking up.
    """

    limit_tokens: int
    other_tokens: int = 0
    question_tokens: int = 0
    reading_tokens: int = 0

    @property
    def whole_tokens(self) -> int:
        """Tokens of documents that can be read whole, with the shortest answer."""
        return max(0, self.limit_tokens - self.other_tokens - self.reading_tokens - MIN_ANSWER_TOKENS)


@dataclass(frozen=True)
class ReadingModel:
    """What reads documents.

    Attributes:
        loaded: the model.
        kv: the precision of its keys and values.
        speed: how fast it is, as far as that is known.
    """

    loaded: LoadedModel
    kv: KVSpec
    speed: ReadingSpeed

    def nbytes(self, num_tokens: int) -> int:
        """Return what the keys and values of so many tokens take."""
        return _kv_nbytes(self.loaded.info, self.loaded.backend, self.kv, num_tokens)


@dataclass(frozen=True)
class WayCost:
    """What one way to read a document costs.

    Attributes:
        way: which one.
        num_pieces: segments; 0 for the other ways.
        seconds: until the answer begins, about; of LOOK_UP and SEGMENTS for each question; None while the
            speed of the model is not measured yet.
        refusal: a sentence that says why it cannot be; empty where it can.
    """

    way: DocumentWay
    num_pieces: int
    seconds: float | None
    refusal: str = ""

    @property
    def words(self) -> str:
        """What it costs in a few words: `fits, about 40 s`, `8 segments, about 3 min`, `at once`."""
        if self.refusal:
            return "does not fit" if self.way is DocumentWay.WHOLE else "no room"
        time = "time not measured yet" if self.seconds is None else short_duration(self.seconds)
        match self.way:
            case DocumentWay.WHOLE:
                return f"fits, {time}"
            case DocumentWay.SEGMENTS:
                return f"{self.num_pieces:,} segment{'' if self.num_pieces == 1 else 's'}, {time}"
            case DocumentWay.LOOK_UP:
                return "at once" if (self.seconds or 0) < _AT_ONCE_S else time


@dataclass(frozen=True)
class DocumentCost:
    """What a document costs, and the way that is sensible.

    Attributes:
        size: how large it is.
        kv_nbytes: its keys and values when it is read whole.
        ways: what each way costs, in the order of `DocumentWay`.
        sensible: the way that is chosen where the user chooses none.
        reason: why, in a sentence.
    """

    size: DocumentSize
    kv_nbytes: int
    ways: tuple[WayCost, ...]
    sensible: DocumentWay
    reason: str

    @property
    def fits(self) -> bool:
        """Whether it fits whole."""
        return not self.of(DocumentWay.WHOLE).refusal

    def of(self, way: DocumentWay) -> WayCost:
        """Return what one way costs."""
        return next(each for each in self.ways if each.way is way)


# While somebody writes, the same documents are asked about with each letter.
_kv_nbytes = functools.lru_cache(maxsize=1024)(kv_nbytes)


def in_segments_s(num_segments: int, document_tokens: int, speed: ReadingSpeed) -> float | None:
    """Return about how many seconds it takes to note what segments say; None while that is not known."""
    prompt_tokens = document_tokens // max(1, num_segments) + INSTRUCTION_TOKENS
    reading_s, writing_s = speed.reading_s(prompt_tokens), speed.writing_s(NOTE_TOKENS, prompt_tokens)
    return None if reading_s is None or writing_s is None else num_segments * (reading_s + writing_s)


def document_costs(
    sizes: Sequence[DocumentSize],
    chosen: Sequence[DocumentWay | None],
    room: ReadingRoom,
    model: ReadingModel,
    mode: DocumentMode,
) -> tuple[DocumentCost, ...]:
    """Return what each of some documents costs that are read together.

    Args:
        sizes: how large they are.
        chosen: the way that is chosen for each, None where that is left to what is sensible.
        room: the room for all of them.
        model: what reads them.
        mode: what is sensible for those that do not fit whole.
    """
    is_whole = read_whole([each.num_tokens for each in sizes], chosen, room)
    whole = [each.num_tokens if whole else 0 for each, whole in zip(sizes, is_whole, strict=True)]
    noted = [not is_whole[index] and way is not DocumentWay.LOOK_UP for index, way in enumerate(chosen)]
    costs = list[DocumentCost]()
    left_s = float(MOST_AUTO_S)
    for index, (size, way) in enumerate(zip(sizes, chosen, strict=True)):
        others = room.other_tokens + sum(whole) - whole[index]
        has_read = not all(is_whole[:index] + is_whole[index + 1 :])
        reading = reading_room_tokens(room.limit_tokens) if has_read else room.reading_tokens
        beside = dataclasses.replace(room, other_tokens=others, reading_tokens=reading)
        num_noted = sum(noted[:index] + noted[index + 1 :]) + 1
        cost = _document_cost(size, beside, model, mode, left_s, num_noted)
        if (way or cost.sensible) is DocumentWay.SEGMENTS:
            left_s -= cost.of(DocumentWay.SEGMENTS).seconds or 0.0
        costs.append(cost)
    return tuple(costs)


def read_whole(tokens: Sequence[int], chosen: Sequence[DocumentWay | None], room: ReadingRoom) -> list[bool]:
    """Return which of some documents are read whole: those chosen, and the smallest as far as they fit.

    Where others are read by another way, room is kept for what is read of them.
    """
    is_whole = [way is DocumentWay.WHOLE for way in chosen]
    free = [index for index, way in enumerate(chosen) if way is None]
    taken = sum(tokens[index] for index, whole in enumerate(is_whole) if whole)
    all_fit = taken + sum(tokens[index] for index in free) <= room.whole_tokens
    if not room.reading_tokens and (not all_fit or len(free) + sum(is_whole) < len(tokens)):
        taken += reading_room_tokens(room.limit_tokens)
    for index in sorted(free, key=lambda index: tokens[index]):
        taken += tokens[index]
        is_whole[index] = taken <= room.whole_tokens
    return is_whole


def _document_cost(
    size: DocumentSize,
    room: ReadingRoom,
    model: ReadingModel,
    mode: DocumentMode,
    left_s: float,
    num_noted: int,
) -> DocumentCost:
    costs = _Costs(size.num_tokens, room, model, num_noted)
    ways = (costs.whole(), costs.segments(), costs.look_up())
    sensible, reason = _sensible(*ways, mode, left_s)
    return DocumentCost(size, model.nbytes(size.num_tokens), ways, sensible, reason)


@dataclass(frozen=True)
class _Costs:
    """Works out what each way costs for a document of so many tokens.

    `num_noted` documents, this one included, would be read in segments where all are that are not chosen to
    be looked up.
    """

    num_tokens: int
    room: ReadingRoom
    model: ReadingModel
    num_noted: int

    def whole(self) -> WayCost:
        other, left = self.room.other_tokens, self.room.whole_tokens
        refusal = ""
        if self.num_tokens > left:
            refusal = f"It has {self.num_tokens:,} tokens, and there is room for {left:,}."
        seconds = self.model.speed.reading_s(self.num_tokens, other)
        return WayCost(DocumentWay.WHOLE, 0, seconds, refusal)

    def segments(self) -> WayCost:
        most = segment_tokens(self.room.question_tokens, self.room.limit_tokens)
        if most is None or self._notes_left <= 0:
            refusal = f"A context of {self.room.limit_tokens:,} tokens is too small for that."
            return WayCost(DocumentWay.SEGMENTS, 0, None, refusal)
        if not has_room_for_notes(self.num_noted, self.room.limit_tokens):
            refusal = f"There is no room for notes on {self.num_noted:,} documents."
            return WayCost(DocumentWay.SEGMENTS, 0, None, refusal)
        count = -(-self.num_tokens // most)
        beside = INSTRUCTION_TOKENS + self.room.question_tokens
        seconds = self._noted_s(count, min(most, self.num_tokens) + beside)
        return WayCost(DocumentWay.SEGMENTS, count, seconds)

    def look_up(self) -> WayCost:
        tokens = min(self._notes_left, self.num_tokens)
        if tokens <= 0:
            refusal = "The context has no room left for passages."
            return WayCost(DocumentWay.LOOK_UP, 0, None, refusal)
        return WayCost(DocumentWay.LOOK_UP, 0, self.model.speed.reading_s(tokens, self.room.other_tokens))

    @property
    def _notes_left(self) -> int:
        """Tokens of notes or passages that there is room for."""
        limit, other = self.room.limit_tokens, self.room.other_tokens
        return min(reading_room_tokens(limit), limit - other - MIN_ANSWER_TOKENS)

    def _noted_s(self, count: int, prompt_tokens: int) -> float | None:
        """Return the seconds to take a note on each segment, to join notes and to read what comes of it."""
        reading_s = self.model.speed.reading_s(prompt_tokens)
        writing_s = self.model.speed.writing_s(NOTE_TOKENS, prompt_tokens)
        if reading_s is None or writing_s is None:
            return None
        passes, notes = count, count
        while notes * NOTE_TOKENS > self._notes_left and notes > 1:
            notes = -(-notes * NOTE_TOKENS // max(prompt_tokens, 2 * NOTE_TOKENS))
            passes += notes
        read = min(notes * NOTE_TOKENS, self._notes_left)
        answer_s = self.model.speed.reading_s(read, self.room.other_tokens) or 0.0
        return passes * (reading_s + writing_s) + answer_s


def _sensible(
    whole: WayCost, segments: WayCost, look_up: WayCost, mode: DocumentMode, left_s: float
) -> tuple[DocumentWay, str]:
    """Return the way that is chosen by itself, and why; `left_s` are left for reading in segments."""
    if not whole.refusal:
        return whole.way, "It fits whole."
    if mode is DocumentMode.WHOLE:
        return whole.way, f"This profile reads documents whole, and this one does not fit. {whole.refusal}"
    if segments.refusal:
        return look_up.way, f"It does not fit whole. {segments.refusal}"
    match mode:
        case DocumentMode.SEGMENTS:
            return segments.way, "It does not fit whole. This profile reads such documents in segments."
        case DocumentMode.LOOK_UP:
            return look_up.way, "It does not fit whole. This profile looks such documents up."
    if segments.seconds is None:
        return look_up.way, "It does not fit whole. How long segments take here is not measured yet."
    if segments.seconds <= left_s:
        return segments.way, "It does not fit whole. In segments, all of it is read for each question."
    words = duration_words(segments.seconds)
    return look_up.way, f"It does not fit whole. In segments, each question would take {words}."
