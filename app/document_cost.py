"""What a document costs to read, by each way, and which way is the sensible one."""

from __future__ import annotations

from dataclasses import dataclass

from app.documents.ways import DocumentWay
from app.profiles import DocumentMode
from app.reading_speed import ReadingSpeed
from engine.kv.precision import KVSpec
from engine.requests import LoadedModel


@dataclass(frozen=True)
class DocumentSize:
    """How large a document is.

    Attributes:
        num_pages: pages, None where the format has none.
        num_words: words; of scripts without blanks, characters.
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
        raise NotImplementedError


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
    raise NotImplementedError


def num_words(text: str) -> int:
    """Return the words of a text; of scripts without blanks between words, the characters."""
    raise NotImplementedError
