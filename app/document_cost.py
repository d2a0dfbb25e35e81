"""What a document costs to read, by each way, and which way is the sensible one."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.duration_words import duration_words, short_duration
from app.profiles import DocumentMode
from app.reading_speed import ReadingSpeed
from engine.admission import INSTRUCTION_TOKENS, note_room_tokens, reading_room_tokens, segment_tokens
from engine.budget import kv_nbytes
from engine.kv.precision import KVSpec
from engine.reply_admission import MIN_ANSWER_TOKENS
from engine.requests import LoadedModel

MOST_AUTO_S = 600
"""Documents are read in segments by themselves where that takes at most so long for a question."""
NOTE_TOKENS = 100
"""About what a model writes on a segment."""
_AT_ONCE_S = 2
_IDEOGRAPHS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = rf"[^\W{_IDEOGRAPHS}]+"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|{_LETTERS}(?:['\u2019-]{_LETTERS})*")


@dataclass(frozen=True)
class DocumentSize:
    """How large a document is.

    Attributes:
        num_pages: pages, None where the format has none.
        num_words: words; in Chinese and Japanese, characters.
        num_tokens: tokens of all that the model reads of it when it reads it whole.
    """

    num_pages: int | None
    num_words: int
    num_tokens: int


@dataclass(frozen=True)
class ReadingRoom:
    """The room that a document is read in.

    Attributes:
        limit_tokens: the context, prompt and answer together.
        other_tokens: what else is read with it: the system prompt, what stays of the conversation, other
            documents that are read whole, the question.
        question_tokens: the question alone, as far as it is written.
    """

    limit_tokens: int
    other_tokens: int = 0
    question_tokens: int = 0


@dataclass(frozen=True)
class WayCost:
    """What one way to read a document costs.

    Attributes:
        way: which one.
        num_pieces: segments; 0 for the other ways.
        seconds: until the answer begins, about; of LOOK_UP and SEGMENTS for each question; None while the
            speed of the model is not measured yet.
        kv_nbytes: keys and values that are held at most.
        refusal: a sentence that says why it cannot be; empty where it can.
    """

    way: DocumentWay
    num_pieces: int
    seconds: float | None
    kv_nbytes: int
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


def document_cost(
    size: DocumentSize,
    room: ReadingRoom,
    loaded: LoadedModel,
    kv: KVSpec,
    mode: DocumentMode,
    speed: ReadingSpeed,
) -> DocumentCost:
    """Return what a document costs with a loaded model at a KV precision."""
    costs = _Costs(size.num_tokens, room, loaded, kv, speed)
    ways = (costs.whole(), costs.segments(), costs.look_up())
    sensible, reason = _sensible(*ways, mode)
    return DocumentCost(size, costs.nbytes(size.num_tokens), ways, sensible, reason)


def num_words(text: str) -> int:
    """Return the words of a text; in Chinese and Japanese, the characters."""
    return sum(1 for _ in _WORD.finditer(text))


@dataclass(frozen=True)
class _Costs:
    """Works out what each way costs for a document of so many tokens."""

    num_tokens: int
    room: ReadingRoom
    loaded: LoadedModel
    kv: KVSpec
    speed: ReadingSpeed

    def nbytes(self, num_tokens: int) -> int:
        """Return what the keys and values of so many tokens take."""
        return kv_nbytes(self.loaded.info, self.loaded.backend, self.kv, num_tokens)

    def whole(self) -> WayCost:
        room = self.room
        left = room.limit_tokens - room.other_tokens - MIN_ANSWER_TOKENS
        refusal = ""
        if self.num_tokens > left:
            refusal = f"It has {self.num_tokens:,} tokens, and there is room for {max(0, left):,}."
        seconds = self.speed.reading_s(self.num_tokens, room.other_tokens)
        nbytes = self.nbytes(room.other_tokens + self.num_tokens)
        return WayCost(DocumentWay.WHOLE, 0, seconds, nbytes, refusal)

    def segments(self) -> WayCost:
        most = segment_tokens(self.room.question_tokens, self.room.limit_tokens)
        if most is None or self._notes_left <= 0:
            refusal = f"A context of {self.room.limit_tokens:,} tokens is too small for that."
            return WayCost(DocumentWay.SEGMENTS, 0, None, 0, refusal)
        count = -(-self.num_tokens // most)
        beside = INSTRUCTION_TOKENS + self.room.question_tokens
        seconds = self._noted_s(count, min(most, self.num_tokens) + beside)
        peak = max(
            most + beside + note_room_tokens(self.room.limit_tokens),
            self.room.other_tokens + self._notes_left,
        )
        return WayCost(DocumentWay.SEGMENTS, count, seconds, self.nbytes(peak))

    def look_up(self) -> WayCost:
        tokens = min(self._notes_left, self.num_tokens)
        if tokens <= 0:
            refusal = "The context has no room left for passages."
            return WayCost(DocumentWay.LOOK_UP, 0, None, 0, refusal)
        seconds = self.speed.reading_s(tokens, self.room.other_tokens)
        return WayCost(DocumentWay.LOOK_UP, 0, seconds, self.nbytes(self.room.other_tokens + tokens))

    @property
    def _notes_left(self) -> int:
        """Tokens of notes or passages that there is room for."""
        limit, other = self.room.limit_tokens, self.room.other_tokens
        return min(reading_room_tokens(limit), limit - other - MIN_ANSWER_TOKENS)

    def _noted_s(self, count: int, prompt_tokens: int) -> float | None:
        """Return the seconds to take a note on each segment, to join notes and to read what comes of it."""
        reading_s = self.speed.reading_s(prompt_tokens)
        writing_s = self.speed.writing_s(NOTE_TOKENS, prompt_tokens)
        if reading_s is None or writing_s is None:
            return None
        passes, notes = count, count
        while notes * NOTE_TOKENS > self._notes_left and notes > 1:
            notes = -(-notes * NOTE_TOKENS // max(prompt_tokens, 2 * NOTE_TOKENS))
            passes += notes
        read = min(notes * NOTE_TOKENS, self._notes_left)
        answer_s = self.speed.reading_s(read, self.room.other_tokens) or 0.0
        return passes * (reading_s + writing_s) + answer_s


def _sensible(
    whole: WayCost, segments: WayCost, look_up: WayCost, mode: DocumentMode
) -> tuple[DocumentWay, str]:
    """Return the way that is chosen by itself, and why."""
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
    if segments.seconds <= MOST_AUTO_S:
        return segments.way, "It does not fit whole. In segments, all of it is read for each question."
    words = duration_words(segments.seconds)
    return look_up.way, f"It does not fit whole. In segments, each question would take {words}."
