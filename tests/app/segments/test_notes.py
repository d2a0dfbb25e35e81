"""Notes that a model writes: asked for again where the segment does not support them, and joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterator
from typing import Any, cast

import pytest

from app.reading.question import DocumentQuestion
from app.segments.budget import SegmentBudget
from app.segments.joining import joined_notes
from app.segments.notes import Note, NoteTaker
from app.segments.numbering import NumberedNote
from app.segments.progress import SegmentEvent, SegmentProgress
from app.segments.prompts import segment_passage
from engine.admission import MOST_SEGMENT_TOKENS
from engine.cancel import CancelToken
from engine.engine import Engine, GenerationRequest
from engine.events import Finished, GenerationEvent, GenerationStats, StopReason, Token
from engine.kv.precision import KVSpec

KV = KVSpec.parse("8")
SEGMENT = (
    "The weather was fair that week. The mill at Harrowgate was built in 1873 by Edith Marlow. "
    "Its owners changed often."
)
TRUE, FALSE = "Edith Marlow built the mill in 1873.", "Edith Marlow built the mill in 1874. It was great."
FITTING = "The mill at Harrowgate was built in 1873 by Edith Marlow."
ASKED, ELSEWHERE = "Who built the mill?", "Who owned the mill?"
"""A question whose words stand in one sentence of the segment, and one of whose words half do."""
FILLER = " The rest is told elsewhere and nobody has written it down so far."
PROGRESS = SegmentProgress(1, 1, "Mills")


class Words:
    """Counts words."""

    def count(self, text: str, cancel: CancelToken) -> int:
        return len(text.split())


class WritingEngine:
    """Writes what a test says, one text for each prompt, word by word."""

    def __init__(self, *texts: str) -> None:
        self.loaded = type("Loaded", (), {"counter": Words()})()
        self.prompts: list[str] = []
        self.num_written = 0
        self._texts = list(texts)

    def keep_prefix(self, conversation_id: int, owner_id: int, cancel: CancelToken) -> int:
        return 0

    def forget(self, conversation_id: int) -> None:
        """Hold nothing."""

    def generate(
        self, request: GenerationRequest, cancel: CancelToken, wanted_kv: Callable[[], KVSpec] | None
    ) -> Iterator[GenerationEvent]:
        self.prompts.append(request.messages[-1].content)
        reason = StopReason.END
        for word in self._texts.pop(0).split():
            if cancel.cancelled:
                reason = StopReason.STOPPED
                break
            self.num_written += 1
            yield Token(f"{word} ", 1)
        yield Finished(dataclasses.replace(GenerationStats.of_nothing(KV, reason), peak_nbytes=7))


def taker(engine: WritingEngine, note_tokens: int = 60, question: str = ASKED) -> NoteTaker:
    asked = DocumentQuestion(1, question, KV, room_tokens=200)
    budget = SegmentBudget(400, note_tokens, 100, 60)
    return NoteTaker(cast(Engine, engine), asked, budget, CancelToken(), None)


def result(generator: Generator[SegmentEvent, None, Any]) -> Any:
    while True:
        try:
            next(generator)
        except StopIteration as ended:
            return ended.value


def note(engine: WritingEngine, note_tokens: int = 60, question: str = ASKED) -> Note:
    segment = segment_passage("Mills", "", SEGMENT)
    found = result(taker(engine, note_tokens, question).note(segment, SEGMENT, PROGRESS))
    assert isinstance(found, Note)
    return found


def test_a_note_that_the_segment_supports_is_taken() -> None:
    engine = WritingEngine(TRUE)
    assert note(engine) == Note(TRUE)
    assert engine.prompts[0].startswith("Segment of the document “Mills”:\n\nThe weather")
    assert engine.prompts[0].index("Who built the mill?") > engine.prompts[0].index("Its owners changed")


def test_one_that_it_does_not_is_asked_for_once_more_with_the_same_beginning() -> None:
    engine = WritingEngine(FALSE, TRUE)
    assert note(engine, question=ELSEWHERE) == Note(TRUE)
    first, second = engine.prompts
    shared = first.index("(End of the segment.)")
    assert first[:shared] == second[:shared] and first != second


def test_and_then_replaced_by_sentences_of_the_segment() -> None:
    assert note(WritingEngine(FALSE, FALSE), question=ELSEWHERE) == Note(FITTING, is_extract=True)


@pytest.mark.parametrize("texts", [("NOTHING",), (FALSE, "NOTHING.")])
def test_nothing_is_no_note(texts: tuple[str, ...]) -> None:
    assert note(WritingEngine(*texts), question=ELSEWHERE) == Note("")


@pytest.mark.parametrize("text", ["NOTHING", FALSE])
def test_a_sentence_that_has_the_words_of_the_question_stands_in_for_a_wrong_note_or_none_at_once(
    text: str,
) -> None:
    engine = WritingEngine(text)
    assert note(engine) == Note(FITTING, is_extract=True)
    assert len(engine.prompts) == 1


def test_sentences_that_have_no_words_of_the_question_are_not_taken() -> None:
    copied = "The weather was fair that week."
    assert note(WritingEngine(FALSE, copied), question="Who owned the mill?").text == FITTING
    assert note(WritingEngine(copied), question="Who owned the mill?") == Note(copied)  # its own choice


def test_a_segment_that_is_about_something_else_is_not_asked_about_again() -> None:
    assert note(WritingEngine(FALSE), question="Who owned the bakery?") == Note("")
    assert note(WritingEngine(TRUE), question="Who owned the bakery?") == Note(TRUE)


def test_it_stands_before_a_note_that_leaves_out_what_it_tells() -> None:
    vague = "The mill at Harrowgate changed its owners often."
    assert note(WritingEngine(vague)) == Note(f"{FITTING} {vague}")


def test_a_note_that_is_of_no_use_is_not_written_to_its_end() -> None:
    engine = WritingEngine(FALSE + FILLER * 5, TRUE)
    assert note(engine, 500, ELSEWHERE) == Note(TRUE)
    assert engine.num_written < 40


def test_a_note_that_is_too_long_ends_with_a_whole_sentence() -> None:
    assert note(WritingEngine(TRUE + " The weather was fair that week and"), 12) == Note(TRUE)


def numbered(*texts: str) -> list[NumberedNote]:
    return [NumberedNote((number,), f"p. {number}", text) for number, text in enumerate(texts, 1)]


def test_notes_that_fit_are_put_together_as_they_are() -> None:
    engine = WritingEngine()
    joined = result(joined_notes(numbered(TRUE, "It was sold."), 100, taker(engine), PROGRESS))
    assert joined == f"[1] (p. 1) {TRUE}\n\n[2] (p. 2) It was sold."
    assert not engine.prompts


def test_neighbours_are_joined_until_they_fit_and_only_what_they_say_is_taken() -> None:
    notes = [
        f"Edith Marlow built the mill in {year} and sold it to Tom Reed later." for year in range(10, 18)
    ]
    engine = WritingEngine(*["The mill was built by Edith Marlow and sold.", "Built in 1999."] * 8)
    joined = result(joined_notes(numbered(*notes), 70, taker(engine, 16), PROGRESS))
    assert len(joined.split()) <= 70
    assert "[1, 2" in joined and "8]" in joined and "1999" not in joined
    assert all(prompt.startswith("Notes on segments of") for prompt in engine.prompts)


def test_a_segment_never_takes_more_than_is_useful_and_leaves_room_for_the_note() -> None:
    large = SegmentBudget.of(32_768, 100, 80)
    assert large.segment_tokens == MOST_SEGMENT_TOKENS and large.note_tokens == 160
    small = SegmentBudget.of(600, 100, 80)
    assert small.segment_tokens + small.writing_tokens + 100 <= 600
    assert small.missing_tokens <= 0 < SegmentBudget.of(200, 100, 80).missing_tokens


def test_notes_are_so_long_that_those_on_all_segments_have_room_together() -> None:
    budget = SegmentBudget.of(8192, 100, 80)
    assert budget.shared_by(4, 2048) == budget and budget.note_tokens == 160
    assert budget.shared_by(20, 2048).note_tokens == 82  # 102 for each, 20 of them for number and place
    assert budget.shared_by(400, 2048).note_tokens == 48


def test_questions_of_about_the_same_length_have_the_same_segments() -> None:
    sizes = [SegmentBudget.of(1600, 400 + length, 80).segment_tokens for length in range(100)]
    assert len(set(sizes)) <= 2 and min(sizes) >= 600
    assert all(0.75 * (1600 - 400 - 400 - 8 - length) <= size for length, size in enumerate(sizes))
